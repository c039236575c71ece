"""The definition of BareMetalHosts, with what metal3's own definition enforces.

Its fields, types, enumerations, required fields and defaults are those of baremetal-operator
(02aa505, `config/base/crds`); descriptions, and limits that no test comes near, are left out.
"""

from typing import Any

Schema = dict[str, Any]

GROUP = "metal3.io"
NAME = f"baremetalhosts.{GROUP}"

TEXT: Schema = {"type": "string"}
TRUTH: Schema = {"type": "boolean"}
NUMBER: Schema = {"type": "integer"}
TIME: Schema = {"type": "string", "format": "date-time"}
TIME_OR_NULL: Schema = {**TIME, "nullable": True}


def one_of(*texts: str) -> Schema:
    """Return the schema of a text of an enumeration."""
    return {"type": "string", "enum": [*texts]}


def fields(required: tuple[str, ...] = (), /, **properties: Schema) -> Schema:
    """Return the schema of an object."""
    more = {"required": [*required]} if required else {}
    return {"type": "object", "properties": properties, **more}


def whole(**properties: Schema) -> Schema:
    """Return the schema of an object that has one owner: apply does not merge its fields."""
    return {**fields(**properties), "x-kubernetes-map-type": "atomic"}


def texts(*names: str) -> dict[str, Schema]:
    """Return fields that are texts."""
    return dict.fromkeys(names, TEXT)


def many(items: Schema, **more: Any) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": items, **more}


MAC: Schema = {"type": "string", "pattern": "[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}"}
BOOT_MODE = one_of("UEFI", "UEFISecureBoot", "legacy")
SECRET = whole(**texts("name", "namespace"))
DEPLOY = fields(("method",), method=TEXT)
FIRMWARE = fields(
    simultaneousMultithreadingEnabled=TRUTH, sriovEnabled=TRUTH, virtualizationEnabled=TRUTH
)
IMAGE = fields(
    ("url",),
    checksumType=one_of("md5", "sha256", "sha512", "auto"),
    format=one_of("raw", "qcow2", "vdi", "vmdk", "live-iso"),
    **texts("checksum", "ociAuthSecretName", "url"),
)
HINTS = fields(
    minSizeGigabytes={**NUMBER, "minimum": 0},
    rotational=TRUTH,
    **texts("deviceName", "hctl", "model", "serialNumber", "vendor", "wwn"),
    **texts("wwnVendorExtension", "wwnWithExtension"),
)
SIZE: Schema = {**NUMBER, "minimum": 0}
RAID = fields(
    hardwareRAIDVolumes=many(
        fields(
            ("level",),
            level=one_of("0", "1", "2", "5", "6", "1+0", "5+0", "6+0"),
            name={**TEXT, "maxLength": 64},
            numberOfPhysicalDisks={**NUMBER, "minimum": 1},
            physicalDisks=many(TEXT),
            rotational=TRUTH,
            sizeGibibytes=SIZE,
            controller=TEXT,
        ),
        nullable=True,
    ),
    softwareRAIDVolumes=many(
        fields(
            ("level",),
            level=one_of("0", "1", "1+0"),
            physicalDisks=many(HINTS, minItems=2),
            rootVolume={**TRUTH, "default": False},
            sizeGibibytes=SIZE,
        ),
        nullable=True,
        maxItems=2,
    ),
)

SPEC = fields(
    ("online",),
    architecture=TEXT,
    automatedCleaningMode={**one_of("metadata", "disabled"), "default": "metadata"},
    bmc=fields(
        ("address", "credentialsName"),
        disableCertificateVerification=TRUTH,
        **texts("address", "credentialsName"),
    ),
    bootMACAddress=MAC,
    bootMode=BOOT_MODE,
    consumerRef=whole(
        **texts("apiVersion", "fieldPath", "kind", "name", "namespace"),
        **texts("resourceVersion", "uid"),
    ),
    customDeploy=DEPLOY,
    description=TEXT,
    disablePowerOff=TRUTH,
    externallyProvisioned=TRUTH,
    firmware=FIRMWARE,
    hardwareProfile=TEXT,
    image=IMAGE,
    inspectionMode=one_of("disabled", "agent", "fast"),
    metaData=SECRET,
    networkData=SECRET,
    online=TRUTH,
    preprovisioningNetworkDataName=TEXT,
    raid=RAID,
    rootDeviceHints=HINTS,
    taints=many(fields(("effect", "key"), timeAdded=TIME, **texts("effect", "key", "value"))),
    userData=SECRET,
)

CREDENTIALS = fields(credentials=SECRET, credentialsVersion=TEXT)
TIMES = fields(end=TIME_OR_NULL, start=TIME_OR_NULL)
HARDWARE = fields(
    cpu=fields(
        clockMegahertz={"type": "number", "format": "double"},
        count=NUMBER,
        flags=many(TEXT),
        **texts("arch", "model"),
    ),
    firmware=fields(bios=fields(**texts("date", "vendor", "version"))),
    hostname=TEXT,
    nics=many(fields(mac=MAC, pxe=TRUTH, speedGbps=NUMBER, **texts("ip", "model", "name"))),
    ramMebibytes=NUMBER,
    storage=many(
        fields(
            rotational=TRUTH,
            sizeBytes={**NUMBER, "format": "int64"},
            type=one_of("HDD", "SSD", "NVME"),
            **texts("hctl", "model", "name", "serialNumber", "vendor", "wwn"),
        )
    ),
    systemVendor=fields(**texts("manufacturer", "productName", "serialNumber")),
)

STATUS = fields(
    (
        *("errorCount", "errorMessage", "operationalStatus", "poweredOn"),
        *("provisioning", "provisioningFailCount"),
    ),
    errorCount={**NUMBER, "default": 0},
    errorMessage=TEXT,
    errorType=one_of(
        *("provisioned registration error", "registration error", "inspection error"),
        *("preparation error", "provisioning error", "power management error", "servicing error"),
    ),
    goodCredentials=CREDENTIALS,
    hardware=HARDWARE,
    hardwareProfile=TEXT,
    lastAttemptedImage=IMAGE,
    lastUpdated=TIME,
    operationHistory=fields(deprovision=TIMES, inspect=TIMES, provision=TIMES, register=TIMES),
    operationalStatus=one_of(
        *("", "OK", "discovered", "error", "delayed", "detached", "servicing")
    ),
    poweredOn=TRUTH,
    provisioning=fields(
        ("ID", "state"),
        bootMode=BOOT_MODE,
        customDeploy=DEPLOY,
        firmware=FIRMWARE,
        image=IMAGE,
        raid=RAID,
        rootDeviceHints=HINTS,
        **texts("ID", "state"),
    ),
    provisioningFailCount={**NUMBER, "default": 0},
    triedCredentials=CREDENTIALS,
)

COLUMNS = (
    ("Status", ".status.operationalStatus", 0),
    ("State", ".status.provisioning.state", 0),
    ("Consumer", ".spec.consumerRef.name", 0),
    ("BMC", ".spec.bmc.address", 1),
    ("Online", ".spec.online", 0),
    ("Error", ".status.errorType", 0),
    ("Age", ".metadata.creationTimestamp", 0),
)
"""What `kubectl get` shows: the name, where it is, and from which priority on it needs `-o wide`.
"""


def definition() -> dict[str, Any]:
    """Return the CustomResourceDefinition."""
    kinds = {"Online": "boolean", "Age": "date"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": "BareMetalHost",
                "listKind": "BareMetalHostList",
                "plural": "baremetalhosts",
                "singular": "baremetalhost",
                "shortNames": ["bmh", "bmhost"],
            },
            "versions": [
                {
                    "name": "v1alpha1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [
                        {
                            "name": name,
                            "jsonPath": path,
                            "priority": priority,
                            "type": kinds.get(name, "string"),
                        }
                        for name, path, priority in COLUMNS
                    ],
                    "schema": {
                        "openAPIV3Schema": fields(
                            metadata={"type": "object"},
                            spec=SPEC,
                            status=STATUS,
                            **texts("apiVersion", "kind"),
                        )
                    },
                }
            ],
        },
    }
