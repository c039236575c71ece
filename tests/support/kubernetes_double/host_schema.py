"""The schema of a BareMetalHost: which fields there are, and what their values may be.

Facts of metal3's CustomResourceDefinition, as of its commit 02aa505 (August 2026). It has no
descriptions, and is the one that tests install in a real API server.
"""

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
NUMBER: Schema = {"type": "integer"}
WHEN: Schema = {"type": "string", "format": "date-time"}
MAC = "[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}"
EXACT_MAC: Schema = {"type": "string", "pattern": f"^{MAC}$"}
DISK_SIZE: Schema = {"type": "integer", "minimum": 0}
CONDITION_REASON = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
CONDITION_TYPE = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)


def fields(required: str = "", /, **known: Schema) -> Schema:
    """Return the schema of an object."""
    found: Schema = {"type": "object", "properties": known}
    return {**found, "required": required.split()} if required else found


def some(of: Schema, **more: Any) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": of, **more}


def texts(*names: str) -> dict[str, Schema]:
    """Return fields that are texts."""
    return dict.fromkeys(names, TEXT)


def one_of(*values: Any, **more: Any) -> Schema:
    """Return the schema of a text with few values."""
    return {"type": "string", "enum": [*values], **more}


def whole(of: Schema) -> Schema:
    """Return the schema of an object that has one owner as a whole."""
    return {**of, "x-kubernetes-map-type": "atomic"}


SECRET = whole(fields(**texts("name", "namespace")))
BOOT_MODE = one_of("UEFI", "UEFISecureBoot", "legacy")
SWITCH = {"type": "boolean", "enum": [True, False]}
FIRMWARE = fields(
    simultaneousMultithreadingEnabled=SWITCH, sriovEnabled=SWITCH, virtualizationEnabled=SWITCH
)
IMAGE = fields(
    "url",
    **texts("url", "checksum", "ociAuthSecretName"),
    checksumType=one_of("md5", "sha256", "sha512", "auto"),
    format=one_of("raw", "qcow2", "vdi", "vmdk", "live-iso"),
)
METHOD = fields("method", method=TEXT)
HINTS = fields(
    **texts("deviceName", "hctl", "model", "serialNumber", "vendor", "wwn", "wwnVendorExtension"),
    wwnWithExtension=TEXT,
    minSizeGigabytes=DISK_SIZE,
    rotational=FLAG,
)
RAID = fields(
    hardwareRAIDVolumes=some(
        fields(
            "level",
            controller=TEXT,
            level=one_of("0", "1", "2", "5", "6", "1+0", "5+0", "6+0"),
            name={"type": "string", "maxLength": 64},
            numberOfPhysicalDisks={"type": "integer", "minimum": 1},
            physicalDisks=some(TEXT),
            rotational=FLAG,
            sizeGibibytes=DISK_SIZE,
        ),
        nullable=True,
    ),
    softwareRAIDVolumes=some(
        fields(
            "level",
            level=one_of("0", "1", "1+0"),
            physicalDisks=some(HINTS, minItems=2),
            rootVolume={"type": "boolean", "default": False},
            sizeGibibytes=DISK_SIZE,
        ),
        maxItems=2,
        nullable=True,
    ),
)
INTERFACE = fields(
    hostNetworkAttachment=fields(
        name={"type": "string", "maxLength": 253}, namespace={"type": "string", "maxLength": 63}
    ),
    macAddress=EXACT_MAC,
    name={"type": "string", "pattern": "^[a-zA-Z0-9._-]+$"},
    switchPort=fields("portID switchID", portID=TEXT, switchID=EXACT_MAC),
)
REFERENCE = whole(
    fields(
        **texts(*["apiVersion", "fieldPath", "kind", "name", "namespace", "resourceVersion", "uid"])
    )
)
SPECIFICATION = fields(
    "online",
    **texts("architecture", "description", "hardwareProfile", "preprovisioningNetworkDataName"),
    automatedCleaningMode=one_of("metadata", "disabled", default="metadata"),
    bmc=fields(
        "address credentialsName",
        **texts("address", "credentialsName"),
        disableCertificateVerification=FLAG,
    ),
    bootMACAddress={"type": "string", "pattern": MAC},
    bootMode=BOOT_MODE,
    consumerRef=REFERENCE,
    customDeploy=METHOD,
    disablePowerOff=FLAG,
    externallyProvisioned=FLAG,
    firmware=FIRMWARE,
    image=IMAGE,
    inspectionMode=one_of("disabled", "agent", "fast"),
    metaData=SECRET,
    networkData=SECRET,
    networkInterfaces=some(INTERFACE),
    online=FLAG,
    raid=RAID,
    rootDeviceHints=HINTS,
    taints=some(fields("effect key", **texts("effect", "key", "value"), timeAdded=WHEN)),
    userData=SECRET,
)
CONDITION = fields(
    "lastTransitionTime message reason status type",
    lastTransitionTime=WHEN,
    message={"type": "string", "maxLength": 32768},
    observedGeneration={"type": "integer", "format": "int64", "minimum": 0},
    reason={"type": "string", "maxLength": 1024, "minLength": 1, "pattern": CONDITION_REASON},
    status=one_of("True", "False", "Unknown"),
    type={"type": "string", "maxLength": 316, "pattern": CONDITION_TYPE},
)
VLAN = {"type": "integer", "format": "int32", "minimum": 0, "maximum": 4094}
NIC = fields(
    **texts("ip", "model", "name", "pciAddress"),
    lldp=fields(**texts("portID", "switchID", "switchSystemName")),
    mac={"type": "string", "pattern": MAC},
    pxe=FLAG,
    speedGbps=NUMBER,
    vlanId=VLAN,
    vlans=some(fields(id=VLAN, name=TEXT)),
)
DISK = fields(
    **texts("hctl", "model", "name", "serialNumber", "vendor", "wwn", "wwnVendorExtension"),
    wwnWithExtension=TEXT,
    alternateNames=some(TEXT),
    rotational=FLAG,
    sizeBytes={"type": "integer", "format": "int64"},
    type=one_of("HDD", "SSD", "NVME"),
)
HARDWARE = fields(
    cpu=fields(
        **texts("arch", "model"),
        clockMegahertz={"type": "number", "format": "double"},
        count=NUMBER,
        flags=some(TEXT),
    ),
    firmware=fields(bios=fields(**texts("date", "vendor", "version"))),
    hostname=TEXT,
    nics=some(NIC),
    ramMebibytes=NUMBER,
    storage=some(DISK),
    systemVendor=fields(**texts("manufacturer", "productName", "serialNumber")),
)
SPAN = fields(end={**WHEN, "nullable": True}, start={**WHEN, "nullable": True})
CREDENTIALS = fields(credentials=SECRET, credentialsVersion=TEXT)
ERRORS = (
    *("provisioned registration error", "registration error", "inspection error"),
    *("preparation error", "provisioning error", "power management error", "servicing error"),
)
PROVISIONING = fields(
    "ID state",
    **texts("ID", "state"),
    bootMode=BOOT_MODE,
    customDeploy=METHOD,
    firmware=FIRMWARE,
    image=IMAGE,
    raid=RAID,
    rootDeviceHints=HINTS,
)
STATUS = fields(
    "errorCount errorMessage operationalStatus poweredOn provisioning provisioningFailCount",
    conditions=some(
        CONDITION,
        maxItems=32,
        **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    ),
    errorCount={"type": "integer", "default": 0},
    errorMessage=TEXT,
    errorType=one_of(*ERRORS),
    goodCredentials=CREDENTIALS,
    hardware=HARDWARE,
    hardwareProfile=TEXT,
    lastAttemptedImage=IMAGE,
    lastUpdated=WHEN,
    operationHistory=fields(deprovision=SPAN, inspect=SPAN, provision=SPAN, register=SPAN),
    operationalStatus=one_of("", "OK", "discovered", "error", "delayed", "detached", "servicing"),
    poweredOn=FLAG,
    provisioning=PROVISIONING,
    provisioningFailCount={"type": "integer", "default": 0},
    triedCredentials=CREDENTIALS,
)
HOST = fields(
    **texts("apiVersion", "kind"), metadata={"type": "object"}, spec=SPECIFICATION, status=STATUS
)
COLUMNS = (
    ("Status", "string", ".status.operationalStatus", 1),
    ("State", "string", ".status.provisioning.state", 0),
    ("Consumer", "string", ".spec.consumerRef.name", 0),
    ("BMC", "string", ".spec.bmc.address", 1),
    ("Online", "string", ".spec.online", 0),
    ("Error", "string", ".status.errorType", 0),
    ("Age", "date", ".metadata.creationTimestamp", 0),
)
"""What `kubectl get` shows: name, type, place, and 1 if only with `-o wide`."""
