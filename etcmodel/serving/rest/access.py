"""Access rules: the host names of this server, and the web pages that may send requests.

A browser on this machine lets any page send requests to any address. A page of another server must
not get a response, even if its name resolves to this machine (DNS rebinding), keep the model busy,
or show this server's page in a frame.
Source: https://fetch.spec.whatwg.org/#http-cors-protocol
"""

import dataclasses
import ipaddress
import re

from etcmodel.serving.rest import reading
from etcmodel.serving.rest.errors import RequestError
from etcmodel.shown_values import shown

ANY = "*"
HEADERS = {  # Of all answers.
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "frame-ancestors 'none'",
}
_AUTHORITY = re.compile(r"(\[[^\[\]@/]+\]|[^:\[\]@/?#\\\s]+)(:\d{0,5})?")
# As sent by browsers: an origin without a path, and names in ASCII.
_HOST_NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?", re.I | re.A)
_ORIGIN = re.compile(
    r"[a-z][a-z0-9+.-]*://(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(:\d{1,5})?/?|null", re.I | re.A
)
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_SECONDS = "600"  # How long a browser may cache the permission.


@dataclasses.dataclass(frozen=True)
class Access:
    """The access rules.

    Attributes:
        hosts: frozenset of str. Host names that requests may use, besides localhost and IP
            addresses; `ANY` for all.
        origins: frozenset of str. Origins, such as https://example.com, whose pages may send
            requests; `ANY` for all.
        own_host: str. The address that the server listens on.

    Raises:
        ValueError: naming the flag, for an invalid name or origin.
    """

    hosts: frozenset = frozenset()
    origins: frozenset = frozenset()
    own_host: str = ""

    def __post_init__(self):
        hosts = _checked(
            self.hosts,
            "allowed_hosts",
            _is_host,
            "names without scheme, port and path, such as my-machine.lan, or * for all",
        )
        origins = _checked(
            self.origins,
            "cors_origins",
            _ORIGIN.fullmatch,
            "origins, such as https://example.com, without a path, or * for all",
        )
        hosts = {x.lower().rstrip(".") for x in (*hosts, self.own_host)}
        object.__setattr__(self, "hosts", frozenset(hosts - {""}))
        origins = {_without_default_port(x.rstrip("/")) for x in origins}
        object.__setattr__(self, "origins", frozenset(origins))

    def check(self, head):
        """Checks the host that a request is for, and the page that sent it.

        Args:
            head: `Head`.
        Raises:
            RequestError: 400 without a valid `Host`, 421 for a host that is not this server, 403
                for a page without permission.
        """
        host = head.one("host")
        if host is None and head.version >= (1, 1):
            raise RequestError(400, "A request must have one `Host`.")
        for authority in (host, reading.target_parts(head.target)[0]):
            if authority is not None:
                self._check_host(authority)
        origin = head.one("origin")
        if origin is not None and not (_is_own(origin, host) or self._is_allowed(origin)):
            raise RequestError(
                403,
                f"Pages of {shown(origin, 80)} may not ask here. --cors_origins of the server "
                "names those that may.",
            )

    def _check_host(self, authority):
        match = _AUTHORITY.fullmatch(authority)
        if not match:
            raise RequestError(
                400, f"The host must be a name or an address: {shown(authority, 80)}."
            )
        name = match[1].lower().rstrip(".")
        is_local = name == "localhost" or name.endswith(".localhost")
        if not (is_local or name in self.hosts or ANY in self.hosts or _is_address(name)):
            raise RequestError(
                421,
                f"This is not the server of {shown(name, 80)}. --allowed_hosts of the server names "
                "those that it is beside localhost, --host and literal addresses.",
            )

    def _is_allowed(self, origin):
        return bool(self.origins & {_without_default_port(origin), ANY})

    def headers(self, head):
        """The CORS headers that let a page of another server read the response: dict.

        Args:
            head: `Head`.
        """
        if not self.origins:
            return {}
        headers = {"Vary": "Origin"}
        for origin in filter(self._is_allowed, head.all("origin")):
            headers["Access-Control-Allow-Origin"] = origin
        return headers

    def preflight_headers(self, head):
        """The headers of the response to a CORS preflight request; {} for other requests.

        Args:
            head: `Head` that passed `check`.
        """
        asked = head.method == "OPTIONS" and head.all("access-control-request-method")
        if not (asked and any(map(self._is_allowed, head.all("origin")))):
            return {}
        return {
            "Access-Control-Allow-Methods": "GET, HEAD, POST",
            "Access-Control-Allow-Headers": "Content-Type, Content-Encoding",
            "Access-Control-Max-Age": _SECONDS,
        }


def _is_own(origin, host):
    """Whether a page belongs to the requested server; a proxy in front of it may use TLS."""
    if host is None:
        return False
    own = {_without_default_port(f"{scheme}://{host}") for scheme in _DEFAULT_PORTS}
    return _without_default_port(origin) in own


def _without_default_port(origin):
    """An origin as browsers write it, without the default port of its scheme."""
    origin = origin.lower()
    return origin.removesuffix(_DEFAULT_PORTS.get(origin.partition("://")[0], ""))


def _checked(names, flag, is_sound, what):
    """frozenset of str, after checking that each is valid in a request."""
    if isinstance(names, str):
        raise ValueError(
            f"--{flag} must be a list of names, not one text. Received: {shown(names)}"
        )
    for name in names:
        if not (isinstance(name, str) and (name == ANY or is_sound(name))):
            raise ValueError(f"--{flag} must be {what}. Received: {shown(name)}")
    return frozenset(names)


def _is_host(name):
    return bool(_HOST_NAME.fullmatch(name)) or _is_address(name)


def _is_address(name):
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True
