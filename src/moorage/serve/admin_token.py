"""Creates the administrator's token on the first start of a server."""

import logging

from moorage.serve.files import Files
from moorage.service.access.audit import Actor
from moorage.service.access.roles import Role
from moorage.service.app import Service
from moorage.store.ownership import UntrustedError

NAME = "admin"

SELF = Actor("moorage serve", None, "server")
"""The actor that creates the token."""

log = logging.getLogger("moorage.serve")


async def admin_token_create(service: Service, files: Files) -> None:
    """Create the administrator's token and write it to its file, unless any token exists.

    Raises `Error`, StartError: the file cannot be written.
    """
    try:
        files.token_read()
    except UntrustedError as error:
        log.warning("%s", error)
    if await service.access.list():
        return
    secret, _ = await service.access.create(NAME, Role.ADMIN, by=SELF)
    files.token_write(secret)
    log.info("the administrator's token is in %s", files.token)
