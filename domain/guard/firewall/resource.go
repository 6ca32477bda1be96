package firewall

import (
	"errors"
	"path"
	"strconv"
	"strings"
)

// Resources converts "<METHOD> <path>" entries of rules to the form in which requests are matched: the template of
// their route (D-WAF-08). It contains the routes of this program. Other applications have their own resources, so an
// unknown path is no error. An entry "LIMIT <name>" is a limit of another service. The zero value is empty.
type Resources struct {
	base  string
	known map[string]string // by the entry in lower case
}

// NewResources returns Resources with the keys of the routes, as "<METHOD> <template>", and the common base path.
func NewResources(base string, keys []string) Resources {
	k := Resources{base: strings.TrimSuffix(base, "/"), known: make(map[string]string, len(keys))}
	for _, key := range keys {
		k.known[strings.ToLower(key)] = key
	}
	return k
}

var (
	errForm   = errors.New("must be of the form '<METHOD> <path>'")
	errMethod = errors.New("does not begin with a method of HTTP")
	errPath   = errors.New("does not name a path")
	errLimit  = errors.New("does not name a limit with 1 to 128 visible characters of ASCII")
)

// methodNames are the HTTP methods; HEAD is GET.
var methodNames = map[string]string{"GET": "GET", "HEAD": "GET", "POST": "POST", "PUT": "PUT", "PATCH": "PATCH",
	"DELETE": "DELETE", "OPTIONS": "OPTIONS", "TRACE": "TRACE", "CONNECT": "CONNECT"}

// Canonical returns the one spelling of an entry. The method is in capitals, with HEAD as GET. The path has no base
// path, query, fragment, doubled or trailing slashes, dot segments or needless escapes. If a route serves it, it has
// the letters of the template. The error describes the malformed part.
func (k Resources) Canonical(entry string) (string, error) {
	f := strings.Fields(entry)
	if len(f) != 2 {
		return "", errForm
	}
	if strings.EqualFold(f[0]+" ", limitPrefix) {
		if !limitName(f[1]) {
			return "", errLimit
		}
		return limitPrefix + f[1], nil
	}
	method, ok := methodNames[strings.ToUpper(f[0])]
	if !ok {
		return "", errMethod
	}
	p := f[1]
	if i := strings.IndexAny(p, "?#"); i >= 0 {
		p = p[:i]
	}
	if p, ok = unescape(p); !ok || p == "" || p[0] != '/' || len(p) > maxPath {
		return "", errPath
	}
	p = path.Clean(p)
	if key, served := k.known[strings.ToLower(method+" "+p)]; served {
		return key, nil
	}
	if rest, below := strings.CutPrefix(p, k.base); below && k.base != "" && strings.HasPrefix(rest, "/") {
		p = rest
		if key, served := k.known[strings.ToLower(method+" "+p)]; served {
			return key, nil
		}
	}
	return method + " " + p, nil
}

// unescape resolves needless percent-encodings. It refuses anything else that a request path may not contain.
func unescape(p string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		ch := p[i]
		if ch == '%' {
			n, err := strconv.ParseUint(p[i+1:min(i+3, len(p))], 16, 8)
			if err != nil || i+2 >= len(p) {
				return "", false
			}
			if ch = byte(n); !unreserved(ch) && ch != '/' {
				b.WriteString(strings.ToUpper(p[i : i+3]))
				i += 2
				continue
			}
			i += 2
		} else if ch <= ' ' || ch >= 0x7f || ch == '\\' || ch == '"' || ch == '<' || ch == '>' {
			return "", false
		}
		b.WriteByte(ch)
	}
	return b.String(), true
}

func unreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~{}", c) >= 0
}
