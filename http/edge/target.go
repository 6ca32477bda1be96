package edge

import (
	"bytes"
	"net"
	"net/netip"
	"strings"

	"github.com/valyala/fasthttp"
)

// originForm turns a target in absolute form, as a client sends it to a proxy, into a path.
// Its authority replaces the Host (RFC 9112, section 3.2.2). Another target stays unchanged;
// canonical refuses it if it is not a path.
func originForm(h *fasthttp.RequestHeader) {
	target := h.RequestURI()
	if len(target) == 0 || target[0] == '/' {
		return
	}
	scheme, rest, found := bytes.Cut(target, schemeEnd)
	if !found || !bytes.EqualFold(scheme, []byte("http")) && !bytes.EqualFold(scheme, []byte("https")) {
		return
	}
	end := bytes.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, path := rest[:end], rest[end:]
	if len(authority) == 0 || bytes.IndexByte(authority, '@') >= 0 {
		return
	}
	if len(path) == 0 || path[0] != '/' {
		path = append([]byte("/"), path...)
	}
	h.SetHostBytes(bytes.Clone(authority))
	h.SetRequestURIBytes(bytes.Clone(path))
}

var schemeEnd = []byte("://")

// Loopback reports whether a host, with or without a port, is a name of this machine: localhost or a loopback address.
func Loopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && a.Unmap().IsLoopback()
}
