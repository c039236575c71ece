"""Why a cloud cannot be used; the message is for people, and has no secret."""


class CloudError(Exception):
    """An entry of clouds.yaml cannot be used, or its Keystone refuses or does not answer."""


class CloudAwayError(CloudError):
    """Keystone does not answer: the same may succeed later."""
