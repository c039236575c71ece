"""Nova's own API on databases of its own: the answers that the double of Nova stands for.

`python -m tests.real_nova.nova_side KEYSTONE FOLDER` runs in the environment with nova. It answers
each line of its input with a line, as `tests.reporters.nova_side` does. `{"serve":
{"password", "limit"}}` makes the databases and starts the API: the pipeline that nova ships, which
validates tokens at KEYSTONE; `limit` is that of the entries in a page.
`{"put": STATE}` makes the databases what a double's are, row by row, with nova's own objects.
`{"down": CELLS}` makes only the databases of these cells unreachable.
"""

import shutil
import socketserver
import sys
import threading
from datetime import timedelta
from importlib.metadata import files
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from nova import context as nova_context
from nova import objects
from nova.api.openstack import wsgi_app
from nova.db import migration
from nova.db.api import api as api_database
from nova.db.api import models as api
from nova.db.main import models as main_models
from nova.network import model as network_model
from nova.network import security_group_api
from oslo_utils import timeutils, uuidutils

from tests.reporters.nova_side import answer_all

Row = dict[str, Any]

CELL0 = "00000000-0000-0000-0000-000000000000"
NOWHERE = "nowhere"
"""The cell of instances that fit nowhere; nova knows it by its UUID."""

USER = "u1"

NODE: Row = {
    **dict.fromkeys(("vcpus", "memory_mb", "local_gb"), 64),
    **dict.fromkeys(("vcpus_used", "memory_mb_used", "local_gb_used"), 0),
    **dict.fromkeys(("cpu_allocation_ratio", "ram_allocation_ratio"), 1.0),
    "disk_allocation_ratio": 1.0,
    "hypervisor_version": 1,
    "cpu_info": "{}",
    "host_ip": "127.0.0.1",
    "mapped": 1,
}
"""What an audit does not look at."""

ABSENT = (
    *("kernel_id", "ramdisk_id", "display_description", "user_data", "key_name", "key_data"),
    *("access_ip_v4", "access_ip_v6", "availability_zone", "root_device_name"),
)
"""What the API sets of an instance before it is in a cell; it may all be empty."""

TABLES = (
    main_models.InstanceActionEvent,
    main_models.InstanceAction,
    main_models.InstanceExtra,
    main_models.InstanceInfoCache,
    main_models.InstanceSystemMetadata,
    main_models.Migration,
    main_models.Instance,
    main_models.ComputeNode,
    main_models.Service,
)

SETTINGS = """\
[DEFAULT]
transport_url = fake:/
log_file = {folder}/log
state_path = {folder}
cell_worker_thread_pool_size = 32
service_down_time = 86400
default_log_levels = nova=WARNING,alembic=WARNING,keystonemiddleware=ERROR,stevedore=CRITICAL
[api]
max_limit = {limit}
[api_database]
connection = sqlite:///{folder}/api.sqlite
[database]
connection = sqlite:///{folder}/nowhere.sqlite
[keystone_authtoken]
interface = public
www_authenticate_uri = {keystone}
auth_type = password
auth_url = {keystone}
username = nova
password = {password}
project_name = service
user_domain_name = Default
project_domain_name = Default
[keystone]
auth_type = password
auth_url = {keystone}
username = nova
password = {password}
project_name = service
user_domain_name = Default
project_domain_name = Default
"""


class Quiet(WSGIRequestHandler):
    """Answers without a line for each request."""

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


class Server(socketserver.ThreadingMixIn, WSGIServer):
    """Answers many requests at once."""

    daemon_threads = True
    request_queue_size = 64


class NovaSide:
    """One Nova."""

    def __init__(self, keystone: str, folder: str) -> None:
        self._keystone, self._folder = keystone, Path(folder)
        self._cells: dict[str, Any] = {}

    def serve(self, words: Row) -> dict[str, Any]:
        """Make the databases, and serve; return the address."""
        settings = SETTINGS.format(folder=self._folder, keystone=self._keystone, **words)
        (self._folder / "nova.conf").write_text(settings)
        paste = next(one for one in files("nova") or () if one.name == "api-paste.ini")
        shutil.copy(str(paste.locate()), self._folder / "api-paste.ini")
        configuration = [str(self._folder / name) for name in ("api-paste.ini", "nova.conf")]
        sys.argv[1:] = []
        wsgi_app.init_global_data(configuration, "osapi_compute", "nova-api-os-compute")
        migration.db_sync(database="api")
        migration.db_sync(database="main")
        # Nobody but Neutron knows the groups: nova asks it about each list of servers.
        security_group_api.get_instances_security_groups_bindings = lambda *_: {}
        self._admin = nova_context.get_admin_context()
        self._map_cell(NOWHERE, CELL0)
        wsgi_app._setup_service("api", "osapi_compute")
        application = wsgi_app.deploy.loadapp(f"config:{configuration[0]}", name="osapi_compute")
        server = make_server("127.0.0.1", 0, application, Server, Quiet)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return {"url": f"http://127.0.0.1:{server.server_port}"}

    def put(self, state: Row) -> dict[str, Any]:
        """Make the databases what a double's are."""
        self._empty()
        for cell in state["cells"]:
            if cell["name"] not in self._cells:
                file = self._folder / f"{cell['name']}.sqlite"
                shutil.copy(self._folder / f"{NOWHERE}.sqlite", file)
                mapped = self._map_cell(cell["name"], uuidutils.generate_uuid())
                self._cells[cell["name"]] = mapped
            with nova_context.target_cell(self._admin, self._cells[cell["name"]]) as context:
                self._fill(context, cell)
        for host, name in state["hosts"].items():
            mapping = objects.HostMapping(self._admin, host=host, cell_mapping=self._cells[name])
            mapping.create()
        for one in state["mappings"]:
            cell = one["cell"] and self._cells[one["cell"]]
            objects.InstanceMapping(
                self._admin,
                instance_uuid=one["uuid"],
                project_id=one["project"],
                user_id=USER,
                cell_mapping=cell,
                queued_for_delete=one["queued_for_delete"],
            ).create()
        for row in state["requests"]:
            self._request(row)
        for row in state["specs"]:
            self._spec(row)
        return {}

    def down(self, names: list[str]) -> dict[str, Any]:
        """Make the databases of these cells unreachable, and all others reachable."""
        for name, cell in self._cells.items():
            there = self._folder / ("absent" if name in names else ".") / f"{name}.sqlite"
            cell.database_connection = f"sqlite:///{there}"
            cell.save()
        nova_context.reset_globals()  # what a worker of nova remembers for as long as it runs
        return {}

    def _map_cell(self, name: str, uuid: str) -> Any:
        cell = objects.CellMapping(
            self._admin,
            uuid=uuid,
            name=name,
            transport_url="fake:/",
            database_connection=f"sqlite:///{self._folder}/{name}.sqlite",
        )
        cell.create()
        nova_context.reset_globals()
        return cell

    def _empty(self) -> None:
        """Delete all rows but those of the cells and of this API."""
        for table in (api.InstanceMapping, api.BuildRequest, api.RequestSpec, api.HostMapping):
            _delete(api_database.context_manager, self._admin, table)
        for cell in self._cells.values():
            with nova_context.target_cell(self._admin, cell) as context:
                for table in TABLES:
                    _delete(context.db_connection, context, table)

    def _fill(self, context: Any, cell: Row) -> None:
        """Write the rows of one cell, with its context."""
        for one in cell["services"]:
            seen = timeutils.utcnow() - timedelta(days=0 if one["is_up"] else 9)
            objects.Service(
                context,
                host=one["host"],
                binary="nova-compute",
                topic="compute",
                report_count=1,
                disabled=one["disabled"],
                forced_down=False,
                last_seen_up=seen,
            ).create()
        ids: dict[str | None, int | None] = {None: None}
        for one in cell["nodes"]:
            node = objects.ComputeNode(
                context,
                uuid=one["uuid"],
                host=one["host"],
                hypervisor_hostname=one["name"],
                hypervisor_type=one["kind"],
                **NODE,
            )
            node.create()
            ids[one["name"]] = node.id
        for one in cell["instances"]:
            instance = _instance(context, one)
            instance.compute_id = ids.get(one["node"])
            instance.create()
            objects.InstanceAction.action_start(context, one["uuid"], "create")
            if one["deleted"]:
                instance.destroy()
        for one in cell["migrations"]:
            objects.Migration(
                context,
                uuid=one["uuid"],
                instance_uuid=one["instance"],
                migration_type=one["kind"],
                status=one["status"],
                source_compute=one["source"],
                source_node=one["source_node"],
                dest_compute=one["target"],
                dest_node=one["target_node"],
                dest_compute_id=ids[one["target_node"]],
            ).create()

    def _request(self, row: Row) -> None:
        instance = _instance(self._admin, row)
        objects.BuildRequest(
            self._admin,
            instance=instance,
            instance_uuid=instance.uuid,
            project_id=instance.project_id,
            block_device_mappings=objects.BlockDeviceMappingList(objects=[]),
            tags=objects.TagList(objects=[]),
        ).create()

    def _spec(self, row: Row) -> None:
        objects.RequestSpec.from_components(
            self._admin,
            row["uuid"],
            image=None,
            flavor=_flavor(row["flavor"]),
            numa_topology=None,
            pci_requests=None,
            filter_properties={},
            instance_group=None,
            availability_zone=None,
            project_id=row["project"],
            user_id=USER,
        ).create()


def _delete(manager: Any, context: Any, table: Any) -> None:
    with manager.writer.using(context):
        context.session.query(table).delete()


def _flavor(row: Row) -> Any:
    """Return a flavor; nova keeps a copy of it in each instance."""
    return objects.Flavor(
        id=1,
        flavorid=row["original_name"],
        name=row["original_name"],
        vcpus=row["vcpus"],
        memory_mb=row["ram"],
        root_gb=row["disk"],
        ephemeral_gb=row["ephemeral"],
        swap=row["swap"],
        rxtx_factor=1.0,
        vcpu_weight=None,
        disabled=False,
        is_public=True,
        extra_specs=row["extra_specs"],
        description=None,
    )


def _instance(context: Any, row: Row) -> Any:
    flavor = _flavor(row["flavor"])
    cache = objects.InstanceInfoCache(network_info=network_model.NetworkInfo())
    return objects.Instance(
        context,
        info_cache=cache,
        uuid=row["uuid"],
        user_id=USER,
        project_id=row["project"],
        host=row["host"],
        node=row["node"],
        vm_state=row["vm_state"],
        task_state=row["task_state"],
        power_state=1,
        image_ref=row["image"],
        flavor=flavor,
        old_flavor=None,
        new_flavor=None,
        instance_type_id=flavor.id,
        vcpus=flavor.vcpus,
        memory_mb=flavor.memory_mb,
        root_gb=flavor.root_gb,
        ephemeral_gb=flavor.ephemeral_gb,
        display_name=row["uuid"],
        hostname=row["uuid"],
        system_metadata={},
        metadata={},
        locked=False,
        config_drive="",
        reservation_id="r-1",
        launch_index=0,
        progress=0,
        auto_disk_config=False,
        trusted_certs=None,
        **dict.fromkeys(ABSENT),
    )


def main() -> None:
    """Answer until the input ends."""
    keystone, folder = sys.argv[1:]
    side = NovaSide(keystone, folder)
    answer_all({"serve": side.serve, "put": side.put, "down": side.down})


if __name__ == "__main__":
    main()
