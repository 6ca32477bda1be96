package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"castellan/internal/blackbox"
)

// message is a request that can be spoilt in each of its parts.
type message struct {
	method, target, version string
	headers                 blackbox.Headers
	body                    []byte
	length                  string // "": the true one
	broken                  bool   // nothing can follow it on its connection
	raw                     func([]byte) []byte
}

func (m message) text() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s %s\r\nHost: a.example\r\n", m.method, m.target, m.version)
	for _, name := range slices.Sorted(maps.Keys(m.headers)) {
		fmt.Fprintf(&b, "%s: %s\r\n", name, m.headers[name])
	}
	length := m.length
	if length == "" {
		length = fmt.Sprint(len(m.body))
	}
	fmt.Fprintf(&b, "Content-Length: %s\r\n\r\n", length)
	b.Write(m.body)
	if m.raw != nil {
		return m.raw(b.Bytes())
	}
	return b.Bytes()
}

// spoil is the example of an endpoint with up to four faults.
func (s *sender) spoil(x told) message {
	path, body := target(x.Endpoint, x.request)
	m := message{method: x.Method, target: path, version: "HTTP/1.1", body: []byte(body),
		headers: s.credentials(x.Endpoint, x.admin)}
	if body != "" {
		m.headers["content-type"] = "application/json"
	}
	for range 1 + s.IntN(4) {
		switch n := s.IntN(100); {
		case n < 40:
			m.body = s.spoilJSON(m.body)
		case n < 52:
			m.body = s.spoilBytes(m.body)
		case n < 66:
			m.target = s.spoilQuery(m.target)
		case n < 74:
			m.target = s.spoilPath(m.target)
		case n < 92:
			s.spoilHeader(m.headers)
		case n < 95:
			m.method = pick(s, []string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "get"})
		default:
			s.spoilFrame(&m)
		}
	}
	if len(m.target) == 0 || strings.ContainsAny(m.target, " \r\n\x00") || m.method == "HEAD" {
		m.broken = true
	}
	for _, v := range m.headers {
		m.broken = m.broken || strings.ContainsAny(v, "\r\n\x00")
	}
	return m
}

func pick[T any](s *sender, of []T) T { return of[s.IntN(len(of))] }

// nasty are unusual JSON values.
var nasty = []string{
	`null`, `true`, `0`, `-0`, `-1`, `1e309`, `1e-400`, `9223372036854775807`, `9223372036854775808`, `0.1`,
	`99999999999999999999999999999999999999.999999999999999999`, `"0x10"`, `""`, `" "`, `"\u0000"`, `"\ud800"`,
	`"\u202e\u0301\ufeff"`, `"٣٤٥"`, `"１２３４５６"`, `"ﬁİıß"`, `[]`, `{}`, `[[[[[[[[[[]]]]]]]]]]`, `[null]`,
	`{"":0}`, `{"__proto__":{"x":1},"constructor":1}`, `"2024-02-30"`, `"9999-12-31T23:59:60Z"`, `-62135596801000`,
	`253402300800000`, `"../../../../etc/passwd"`, `"';--"`, `"%00"`, `"${jndi:ldap://a}"`, `"{{code}}{code}"`,
	`"data:image/png;base64,iVBORw0KGgo="`,
	`"<svg/onload=a()>"`, `"https://127.0.0.1/"`, `"+905321234567"`, `"NaN"`,
	`"bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"`, `"=cmd|'/c'!A1"`, `"a@b"`, `"@"`, `"TR"`, `"1,5"`, `1E+2`,
}

// value is a nasty value, or a long or deep one.
func (s *sender) value() json.RawMessage {
	switch s.IntN(30) {
	case 0:
		return json.RawMessage(`"` + strings.Repeat(pick(s, []string{"x", "ş", `\n`, "𝒳"}), 1+s.IntN(70_000)) + `"`)
	case 1:
		n := 1 + s.IntN(200)
		return json.RawMessage(strings.Repeat("[", n) + strings.Repeat("]", n))
	case 2:
		return json.RawMessage("[" + strings.Repeat(pick(s, nasty)+",", s.IntN(2000)) + "0]")
	}
	return json.RawMessage(pick(s, nasty))
}

// spoilJSON changes a field of the object, or of one inside of it; a name may also stand twice.
func (s *sender) spoilJSON(body []byte) []byte {
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil || len(fields) == 0 || s.IntN(40) == 0 {
		return s.value()
	}
	name := pick(s, slices.Sorted(maps.Keys(fields)))
	switch s.IntN(8) {
	case 0:
		delete(fields, name)
	case 1: // a field of another endpoint
		path, other := target(s.all[0].Endpoint, pick(s, s.all).request)
		var more map[string]json.RawMessage
		if json.Unmarshal([]byte(other), &more) == nil {
			maps.Copy(fields, more)
		}
		fields[path] = s.value()
	case 2: // twice
		text, _ := json.Marshal(fields)
		twice, _ := json.Marshal(map[string]json.RawMessage{name: s.value()})
		return append(append(text[:len(text)-1:len(text)-1], ','), twice[1:]...)
	case 3: // inside
		var list []json.RawMessage
		if json.Unmarshal(fields[name], &list) == nil && len(list) > 0 {
			i := s.IntN(len(list))
			list[i] = s.spoilJSON(list[i])
			fields[name], _ = json.Marshal(list)
		} else if bytes.HasPrefix(fields[name], []byte("{")) {
			fields[name] = s.spoilJSON(fields[name])
		}
	default:
		fields[name] = s.value()
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return body
	}
	return text
}

// spoilBytes changes a few bytes, or takes from another request.
func (s *sender) spoilBytes(text []byte) []byte {
	text = slices.Clone(text)
	for range 1 + s.IntN(3) {
		at := s.IntN(len(text) + 1)
		switch s.IntN(4) {
		case 0:
			text = slices.Insert(text, at, byte(s.IntN(256)))
		case 1:
			text = text[:at]
		case 2:
			text = append(text[:at:at], pick(s, s.all).request...)
		default:
			if at < len(text) {
				text[at] ^= 1 << s.IntN(8)
			}
		}
	}
	return text
}

func (s *sender) spoilQuery(target string) string {
	path, query, _ := strings.Cut(target, "?")
	fields, _ := url.ParseQuery(query)
	name := "page"
	if names := slices.Sorted(maps.Keys(fields)); len(names) > 0 && s.IntN(3) > 0 {
		name = pick(s, names)
	}
	value := strings.Trim(string(s.value()), `"`)
	value = value[:min(len(value), 3000)]
	switch s.IntN(5) {
	case 0:
		return path + "?" + query + "&" + pick(s, []string{"%", "%zz=1", "=", "a=%ff", "&&&", "a[]=1", ";",
			"\x7f", "a=+%2b"})
	case 1:
		fields.Add(name, value) // twice
	default:
		fields.Set(name, value)
	}
	return path + "?" + fields.Encode()
}

func (s *sender) spoilPath(target string) string {
	path, query, asked := strings.Cut(target, "?")
	parts := strings.Split(path, "/")
	at := s.IntN(len(parts))
	switch s.IntN(7) {
	case 0:
		parts[at] = pick(s, []string{"..", ".", "", "%2e%2e", "%2f", "%00", "*", ";a=b", "\xff", "%", "~", "00000000"})
	case 1:
		parts[at] = strings.ToUpper(parts[at])
	case 2:
		parts[at] += string(rune(s.IntN(0x250)))
	case 3:
		parts = append(parts, pick(s, parts))
	case 4:
		parts[at] = strings.Repeat("a", s.IntN(3000))
	case 5:
		parts[at] = url.PathEscape(strings.Trim(pick(s, nasty), `"`))
	default:
		return pick(s, []string{"*", "//", "/", "http://b.example" + path, "/dev/outbox?to=%ff", "/docs", "/openapi.json",
			"/health/ready", "/cdn/../x", "/socket", "#", path + "#a"})
	}
	if path = strings.Join(parts, "/"); asked {
		path += "?" + query
	}
	return path
}

// spoilHeader adds a header, or damages the one that is there.
func (s *sender) spoilHeader(h blackbox.Headers) {
	long := strings.Repeat("a,", s.IntN(1500))
	more := []blackbox.Headers{
		{"x-forwarded-for": pick(s, []string{"1.2.3.4, ::1", "fe80::1%eth0", ",,,", "unknown", "::ffff:1.2.3.4", long})},
		{"forwarded": `for="[::1]:80";proto=https, for=_x`}, {"x-real-ip": "10.0.0.1"},
		{"country": pick(s, []string{"", "XX", "tr", "ZZ", "T1", "\xff", "TR,US", "İS"})},
		{"accept-language": pick(s, []string{"tr;q=0.5,ar", "*;q=0", ";;;", "x-" + long, "en;q=abc"})},
		{"content-type": pick(s, []string{"text/plain", "application/json;charset=utf-16", "multipart/form-data", ";", ""})},
		{"content-encoding": pick(s, []string{"gzip", "identity", "br, gzip", "x"})},
		{"user-agent": pick(s, []string{"", "Mozilla/5.0 (" + long, "\xff\xfe", strings.Repeat("(", 2000)})},
		{"prefer": pick(s, []string{"wait=1", "wait=-1", "wait=99999999999999999999", "respond-async, wait"})},
		{"idempotency-key": pick(s, []string{"", `"k"`, "k", long, "\xc3\x28", "k-" + fmt.Sprint(s.IntN(50))})},
		{"otp": pick(s, []string{"000000", "", "１２３４５６", " 123456", "12345678901234567890"})},
		{"device-signature": pick(s, []string{"a.b.c", "eyJhbGciOiJub25lIn0..", "", strings.Repeat("a.", 1000)})},
		{"x-auth": pick(s, []string{"", "a.b.c", s.user.xAuth + "=", s.user.pAuth, s.admin.xAuth, long})},
		{"p-auth": pick(s, []string{s.user.pAuth, s.user.xAuth, "..", s.admin.pAuth})},
		{"ot-auth": pick(s, []string{s.user.otAuth, s.user.xAuth, "x"})},
		{"cron-auth": pick(s, []string{"a", "a.b", long})},
		{"origin": pick(s, []string{"null", "https://evil.example", "\xff"})}, {"x-request-id": long},
		{"upgrade": "websocket", "connection": "upgrade", "sec-websocket-key": "AAAA", "sec-websocket-version": "13"},
		{"expect": "100-continue"}, {"range": "bytes=0-,5-"}, {"if-none-match": `*,"x`}, {"cookie": long}, {"a b": "c"},
	}
	if s.IntN(4) > 0 {
		maps.Copy(h, pick(s, more))
		return
	}
	name := pick(s, slices.Sorted(maps.Keys(h)))
	h[name] = string(s.spoilBytes([]byte(h[name])))
}

// spoilFrame damages the form of the message, after which its connection is of no more use.
func (s *sender) spoilFrame(m *message) {
	m.broken = true
	switch s.IntN(6) {
	case 0:
		m.length = pick(s, []string{"-1", "0x5", "5, 5", "99999999999999999999", fmt.Sprint(len(m.body) + 5), "+1", "0"})
	case 1:
		m.headers["transfer-encoding"] = pick(s, []string{"chunked", "gzip, chunked", "identity", "chunked, chunked"})
	case 2:
		m.version = pick(s, []string{"HTTP/1.0", "HTTP/1.9", "HTTP/2.0", "http/1.1", "", "HTTP/1.1 "})
	case 3:
		m.raw = func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")) }
	case 4:
		m.raw = func(b []byte) []byte { return b[:s.IntN(len(b)+1)] }
	default:
		m.raw = func(b []byte) []byte { return s.spoilBytes(b) }
	}
}
