"""Creates the administrator's token on the first start of a server."""

import logging
import os

from moorage.config import ConfigError
from moorage.ownership import UntrustedError
from moorage.serve.files import Files
from moorage.service.access.roles import Role
from moorage.service.app import Service
from moorage.service.audit_entries import Actor

NAME = "admin"

SELF = Actor("moorage serve", None, "server")
"""The actor that creates the token."""

log = logging.getLogger("moorage.serve")


async def admin_token_create(service: Service, files: Files) -> None:
    """Create the administrator's token and write it to its file, unless any token exists.

    Raises `Error`, ConfigError: the file cannot be written. Then no token is created, because the
    next start would create no other.
    """
    try:
        files.token_read()
    except UntrustedError as error:
        log.warning("%s", error)
    if await service.access.list():
        return
    try:
        files.token_prepare()
    except OSError as error:
        raise ConfigError(
            f"cannot write the administrator's token to {files.token}: {error.strerror}; set"
            f" XDG_STATE_HOME to a folder that the user {os.geteuid()} can write to (in a"
            " container, mount a volume there)"
        ) from None
    secret, _ = await service.access.create(NAME, Role.ADMIN, by=SELF)
    files.token_write(secret)
    log.info("the administrator's token is in %s", files.token)
