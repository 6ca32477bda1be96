package edge

import (
	"castellan/domain/kit/fault"
	"castellan/http/rest"
)

// The methods of a request for a raw handler that decides about another request (D-EXT-11).

// FromTrustedProxy reports whether the other end of the connection is a trusted proxy.
func (r *Request) FromTrustedProxy() bool {
	return contains(r.srv.opts.TrustedProxies, peerOf(r.fctx.RemoteAddr()))
}

// HeaderOnce is a copy of a request header, and whether it was sent more than once.
func (r *Request) HeaderOnce(name string) (value string, repeated bool) {
	all := r.fctx.Request.Header.PeekAll(name)
	if len(all) == 0 {
		return "", false
	}
	return string(all[0]), len(all) > 1
}

// Headers are copies of the headers of the request, as sent.
func (r *Request) Headers(yield func(name, value string) bool) {
	for name, value := range r.fctx.Request.Header.AllInOrder() {
		if !yield(string(name), string(value)) {
			return
		}
	}
}

// Host is a copy of the host that the request names.
func (r *Request) Host() string { return string(r.fctx.Host()) }

// Below is the target of the request, with its query, after a path of the interface; "" for the path itself.
func (r *Request) Below(path string) string {
	target, base := r.fctx.Request.Header.RequestURI(), r.srv.opts.BasePath
	n := len(base) + len(path)
	if len(target) <= n || target[n] != '/' || string(target[:len(base)]) != base ||
		string(target[len(base):n]) != path {
		return ""
	}
	return string(target[n:])
}

// Refuse answers with a problem that the handler wrote.
func (r *Request) Refuse(status int, code fault.Code, body []byte) {
	r.code = code
	r.write(status, rest.Answer{Body: body, ContentType: rest.TypeProblem})
}
