package dpop

import (
	"net/url"
	"strings"
)

// names reports whether a target is the address of the request. It is below the public URL or at one of the origins, or
// at the host of a forwarded request if the operator has named it. The scheme of that host is unknown, so both are
// accepted.
func (v *Verifier) names(target string, r Request) int {
	public := v.PublicURL + strings.TrimPrefix(r.Path, v.BasePath)
	if equal(target, public) == 1 { // the usual spelling needs no comparison of forms
		return 1
	}
	target = normal(target)
	named := equal(target, normal(public))
	for _, origin := range v.Origins {
		named |= equal(target, normal(origin+r.Path))
	}
	if r.Host != "" && (v.AnyHost || r.Forwarded && v.Host != nil && v.Host(r.Host)) {
		named |= equal(target, normal("https://"+r.Host+r.Path)) | equal(target, normal("http://"+r.Host+r.Path))
	}
	return named
}

// normal returns an address without query and fragment, in the form that all spellings of one address share (RFC 9449,
// section 4.3). The rules are those of syntax and scheme (RFC 3986, sections 6.2.2 and 6.2.3). Text that is no such
// address is only cut.
func normal(address string) string {
	address, _, _ = strings.Cut(address, "#")
	address, _, _ = strings.Cut(address, "?")
	u, err := url.Parse(address)
	if err != nil || u.Opaque != "" || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return address
	}
	host, port := strings.ToLower(u.Host), u.Port()
	if port == "" || port == map[string]string{"http": "80", "https": "443"}[u.Scheme] {
		host = strings.TrimSuffix(strings.TrimSuffix(host, port), ":")
	}
	return u.Scheme + "://" + host + normalPath(u.EscapedPath())
}

// normalPath decodes what needs no escape, writes the other escapes in capitals, and removes dot segments (RFC 3986,
// section 5.2.4).
func normalPath(path string) string {
	const hex, unreserved = "0123456789ABCDEF", "-._~"
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		c := path[i]
		if c != '%' || i+2 >= len(path) {
			b.WriteByte(c)
			continue
		}
		escape := strings.ToUpper(path[i : i+3])
		c = byte(strings.IndexByte(hex, escape[1])<<4 | strings.IndexByte(hex, escape[2]))
		if i += 2; c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || strings.IndexByte(unreserved, c) >= 0 {
			b.WriteByte(c)
		} else {
			b.WriteString(escape)
		}
	}
	var out []string
	parts := strings.Split(strings.TrimPrefix(b.String(), "/"), "/")
	for i, part := range parts {
		switch part {
		case "..":
			out = out[:max(0, len(out)-1)]
			fallthrough
		case ".":
			if i == len(parts)-1 {
				out = append(out, "")
			}
		default:
			out = append(out, part)
		}
	}
	return "/" + strings.Join(out, "/")
}
