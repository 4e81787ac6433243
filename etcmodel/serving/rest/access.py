"""Who may ask: by which names of this server, and which pages of other servers in a browser.

A browser on this machine lets any page send requests to any address. The page of another server
must get no answer, even if its name leads to this machine (DNS rebinding), make the model work for
nothing, or show the page of this one in a frame of its own.
Source: https://fetch.spec.whatwg.org/#http-cors-protocol
"""

import dataclasses
import ipaddress
import re
import urllib.parse

from etcmodel.serving.rest.errors import RequestError
from etcmodel.shown_values import shown

__all__ = ["ANY", "HEADERS", "Access"]

ANY = "*"
HEADERS = {  # Of all answers.
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "frame-ancestors 'none'",
}
_AUTHORITY = re.compile(r"(\[[^\[\]@/]+\]|[^:\[\]@/?#\\\s]+)(:\d{0,5})?")
_SECONDS = "600"  # So long a browser need not ask again whether it may.


@dataclasses.dataclass(frozen=True)
class Access:
    """The rules.

    Attributes:
        hosts: frozenset of str. Names by which the server may be asked, beside localhost and
            literal addresses; `ANY` for all.
        origins: frozenset of str. Origins, such as https://example.com, whose pages may ask; `ANY`
            for all.
    """

    hosts: frozenset = frozenset()
    origins: frozenset = frozenset()

    def __post_init__(self):
        object.__setattr__(self, "hosts", frozenset(x.lower().rstrip(".") for x in self.hosts))
        object.__setattr__(self, "origins", frozenset(x.lower().rstrip("/") for x in self.origins))

    def check(self, head):
        """Checks whom a request is for, and which page asks.

        Args:
            head: `Head`.
        Raises:
            RequestError: 400 without a sound `Host`, 421 for one that is not this server's, 403 for
                a page that may not ask.
        """
        host = head.one("host")
        if host is None and head.version >= (1, 1):
            raise RequestError(400, "A request must have one `Host`.")
        for authority in (host, _authority(head.target)):
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
            raise RequestError(400, f"`Host` must be a name or an address: {shown(authority, 80)}.")
        name = match[1].lower().rstrip(".")
        is_local = name == "localhost" or name.endswith(".localhost")
        if not (is_local or name in self.hosts or ANY in self.hosts or _is_address(name)):
            raise RequestError(
                421,
                f"This is not the server of {shown(name, 80)}. --allowed_hosts of the server names "
                "those that it is beside localhost, --host and literal addresses.",
            )

    def _is_allowed(self, origin):
        return bool(self.origins & {origin.lower(), ANY})

    def headers(self, head):
        """The headers by which a browser lets a page of another server read the answer: dict.

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
        """The headers of the answer to a browser that asks what a page may send; {} to others.

        Args:
            head: `Head` that `check` has let pass.
        """
        asked = head.method == "OPTIONS" and head.all("access-control-request-method")
        if not (asked and any(map(self._is_allowed, head.all("origin")))):
            return {}
        return {
            "Access-Control-Allow-Methods": "GET, HEAD, POST",
            "Access-Control-Allow-Headers": "Content-Type, Content-Encoding",
            "Access-Control-Max-Age": _SECONDS,
        }


def _authority(target):
    """The host of a target that is a whole URL, which then counts beside `Host`; else None."""
    if target.startswith("/") or target == "*":
        return None
    try:
        return urllib.parse.urlsplit(target).netloc
    except ValueError:
        raise RequestError(400, "The address is no URL.") from None


def _is_own(origin, host):
    """Whether a page is of the server that is asked; what is in front of it may speak TLS."""
    if host is None:
        return False
    return origin.lower() in {f"{scheme}://{host.lower()}" for scheme in ("http", "https")}


def _is_address(name):
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True
