package gateway

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// The servers that take one spelling of a path for another.
const (
	readsUnicode = "file systems that normalise Unicode, such as that of macOS"
	readsBlanks  = "file systems and frameworks that drop dots and blanks around a name, such as Windows"
	readsStreams = "Windows, where a stream of a file follows a colon"
	readsShort   = "Windows, where a file also has a short name"
	readsFormats = "routers and servers that take a suffix for a format, such as Rails, Spring and MultiViews of Apache"
	readsScripts = "PHP and CGI, where the path may continue after the name of a script"
	readsIndexes = "servers and frameworks with an index or a default page, such as Apache, IIS and ASP.NET MVC"
)

// respell refuses a request that some servers take for that of another active route than the one that decides.
func (t *Table) respell(q Request, m *Match, decides int) {
	if !t.plainly && !slices.ContainsFunc(m.segments, odd) {
		return
	}
	scripts := scriptsBefore(m.segments)
	for i := range t.rules {
		r := &t.rules[i]
		if (m.Respelled != nil || m.Tried == &r.Route) && r.Status != Active {
			continue // the first on trial is named, unless an active one is found
		}
		s, ok := r.read(q, m.segments, scripts)
		if !ok || decides < len(t.rules) && t.rules[decides].owns(s, i > decides) ||
			m.Route != nil && (m.Route.Mode == Refuse || m.Route.Mode == Session && r.Mode == Session) {
			continue
		}
		m.Respelled, m.Reader, m.Sent = &r.Route, s.reader, s.sent
		if r.Status == Active {
			m.Ambiguous, m.Route = true, nil
			return
		}
	}
}

// owns reports whether the route that decides about a request also decides about its other spelling. It does if it
// names each segment that differs, or has * or /** there and comes before the other route.
func (r *rule) owns(s spelling, before bool) bool {
	for _, i := range s.at {
		if i >= len(r.segments) && !before || i < len(r.segments) && r.segments[i] == "*" && (s.moved || !before) {
			return false
		}
	}
	return len(s.at) > 0 || !r.deep || before
}

// spelling is a reading of a request as another path.
type spelling struct {
	reader string // the servers that read it so
	sent   string // the segment that they take for another; "" for the path /
	at     []int  // the segments that a route must name to be that of this spelling
	moved  bool   // the other path has another number of segments
}

// read returns the spelling by which servers take a request for one of the route. ok is false if there is none, and if
// the paths differ only in their case. All such spellings are named here, in compare and in reads. scripts are the
// segments that PHP and CGI leave out with all before them: for them /index.php/pay is /pay.
func (r *rule) read(q Request, sent []string, scripts []int) (s spelling, ok bool) {
	if !r.concerns(q, strings.EqualFold) {
		return s, false
	}
	if s, ok = r.compare(sent); ok {
		return s, true
	}
	for _, i := range scripts {
		rest := sent[i+1:]
		if s, ok = r.compare(rest); ok || r.matches(q, rest, strings.EqualFold) {
			for j := range s.at {
				s.at[j] += i + 1
			}
			return spelling{readsScripts, sent[i], append(s.at, i), true}, true
		}
	}
	return spelling{}, false
}

// compare is read for a request that is for the host and the method of the route, without a script in front.
func (r *rule) compare(sent []string) (s spelling, ok bool) {
	own, last, script := r.segments, len(sent)-1, -1
	note := func(i int, reader string) {
		s.reader, s.sent, s.at = reader, sent[i], append(s.at, i)
	}
	n := len(own)
	if n > 0 && n <= last && isScript(sent[n-1]) {
		script = n - 1 // the path of the route ends here, and the request continues behind the script
	}
	switch {
	case r.deep && n <= len(sent), n == len(sent):
	case n == last && isIndex(sent[last]):
		s.moved = true
		note(last, readsIndexes)
	case script >= 0, n > 0 && n <= last && isScript(own[n-1]):
		s.moved = true
		note(last, readsScripts)
	case n == len(sent)+1 && isIndex(own[n-1]):
		s.moved, s.reader, own = true, readsIndexes, own[:n-1]
		if last >= 0 {
			note(last, readsIndexes)
		}
	default:
		return s, false
	}
	for i, literal := range own {
		if literal == "*" || strings.EqualFold(literal, sent[i]) {
			continue
		}
		reader := reads(literal, sent[i], i == last || i == script)
		if reader == "" {
			return s, false
		}
		if i == script && reader == readsFormats {
			reader, s.moved = readsScripts, true
		}
		note(i, reader)
	}
	return s, s.reader != ""
}

// reads names the servers that take a segment for a literal that differs from it by more than the case; "" for none.
// Only the last segment of a path has a format.
func reads(literal, sent string, last bool) string {
	literal, whole := strings.TrimLeft(folded(literal), blanks), folded(sent)
	name := strings.TrimLeft(whole, blanks)
	reader := follows(literal, name, last)
	switch {
	case reader == readsUnicode && name != whole:
		return readsBlanks
	case reader != "":
		return reader
	}
	if stem, format, found := cutFormat(literal); found && last && isFormat(format) && follows(stem, name, last) != "" {
		return readsFormats
	}
	if start, rest, found := strings.Cut(name, "~"); found && isShort(start, rest, literal) {
		return readsShort
	}
	return ""
}

// blanks are the characters that servers drop around a name: a form encodes a space as +.
const blanks = " +"

// follows names the servers that ignore what a segment has after a literal.
func follows(literal, sent string, last bool) string {
	rest, found := strings.CutPrefix(sent, literal)
	end := strings.TrimLeft(rest, "."+blanks)
	switch {
	case !found:
		return ""
	case rest == "":
		return readsUnicode // or a blank in front
	case end == "":
		return readsBlanks
	case end[0] == ':':
		return readsStreams
	case last && strings.HasPrefix(strings.TrimLeft(rest, blanks), "."):
		return readsFormats
	}
	return ""
}

// folded returns a segment as the most generous file systems compare it: in compatibility form and lower case, and
// without the characters that do not show.
func folded(segment string) string {
	plain := true
	for i := range len(segment) {
		plain = plain && segment[i] < 0x80
	}
	if !plain {
		segment = strings.Map(func(r rune) rune {
			switch {
			case unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
				return -1
			case unicode.IsSpace(r):
				return ' '
			case r == '。': // the full stop of ideographic texts, which host names and some file systems fold
				return '.'
			}
			return r
		}, norm.NFKC.String(segment))
	}
	return strings.ToLower(segment)
}

// isShort reports whether a name, cut at its tilde, may be the short one that Windows gives a file. An example is
// WITHDR~1.JSO, or WI3F2C~1 where many files begin so.
func isShort(start, rest, literal string) bool {
	number, _, _ := strings.Cut(rest, ".")
	n := len(start)
	return n >= 2 && n <= 6 && len(literal) > 2 && number != "" && strings.Trim(number, "0123456789") == "" &&
		(strings.HasPrefix(strings.NewReplacer(".", "", " ", "").Replace(literal), start) ||
			n == 6 && start[:2] == literal[:2] && strings.Trim(start[2:], "0123456789abcdef") == "")
}

func cutFormat(name string) (stem, format string, found bool) {
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		return name[:i], name[i+1:], true
	}
	return name, "", false
}

// isFormat reports whether the end of a name is a format such as json, and not part of a version such as 1.2.
func isFormat(s string) bool {
	return s != "" && len(s) <= 8 && unicode.IsLetter(rune(s[0])) &&
		!strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 || !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// scriptFormats are the formats of files that servers run for a path behind their name.
var scriptFormats = strings.Fields("php php3 php4 php5 php7 php8 pht phtml phar cgi fcgi pl py rb asp aspx ashx asmx " +
	"jsp jspx cfm cfc do action")

// isScript reports whether a segment is the name of such a file, also as Windows reads it.
func isScript(segment string) bool {
	name, _, _ := strings.Cut(folded(segment), ":")
	_, format, found := cutFormat(strings.TrimRight(name, "."+blanks))
	return found && slices.Contains(scriptFormats, format)
}

// scriptsBefore returns the indexes of the scripts in a path behind which it continues.
func scriptsBefore(segments []string) (all []int) {
	for i, s := range segments[:max(0, len(segments)-1)] {
		if isScript(s) {
			all = append(all, i)
		}
	}
	return all
}

// isIndex reports whether a segment names the page of its folder, or the action of its controller.
func isIndex(segment string) bool {
	name, _, file := strings.Cut(folded(segment), ".")
	return strings.TrimRight(name, blanks) == "index" || file && (name == "default" || name == "iisstart")
}

// odd reports whether a segment may be another spelling of some literal. It spares other requests the comparison.
func odd(segment string) bool {
	for i := range len(segment) {
		if c := segment[i]; c >= 0x80 || strings.IndexByte(".: +~", c) >= 0 {
			return true
		}
	}
	return len(segment) == len("index") && strings.EqualFold(segment, "index")
}

// plainly reports whether the route may be meant by a request without an odd segment.
func (r *rule) plainly() bool {
	n := len(r.segments)
	if n == 0 {
		return false
	}
	_, format, found := cutFormat(r.segments[n-1])
	return found && isFormat(strings.ToLower(format)) || isIndex(r.segments[n-1])
}

// hollow reports whether a segment is none to some servers: Windows drops dots and blanks at the end of each, and
// ASP.NET takes (S(x)) for its session.
func hollow(segment string) bool {
	if first, _ := utf8.DecodeRuneInString(segment); first != '(' && first != '.' && !unicode.IsSpace(first) {
		return false
	}
	s := folded(segment)
	return strings.Trim(s, ". ") == "" || len(s) > 3 && s[0] == '(' && s[2] == '(' && strings.HasSuffix(s, "))")
}

// Spelled names requests that a route refuses, or would refuse after its trial, because some servers take them for
// others.
type Spelled struct {
	RouteID int64
	Reader  string    // the servers
	Hour    time.Time // the full hour of the requests
	Sent    string    // the segment of the first of them
	Count   int64
}

// maxSent bounds Spelled.Sent, in bytes.
const maxSent = 64

// spelledKey is what is counted together.
type spelledKey struct {
	route  int64
	reader string
	hour   int64
}

// note counts a request that is spelled in another way. It is stored by Flush.
func (g *Guard) note(m Match) {
	hour := g.Now().Truncate(time.Hour)
	key := spelledKey{m.Respelled.ID, m.Reader, hour.UnixMilli()}
	g.spelledMu.Lock()
	defer g.spelledMu.Unlock()
	if g.spelled == nil {
		g.spelled = map[spelledKey]*Spelled{}
	}
	s, known := g.spelled[key]
	if !known {
		s = &Spelled{RouteID: key.route, Reader: key.reader, Hour: hour, Sent: short(m.Sent)}
		g.spelled[key] = s
	}
	s.Count++
}

// short returns the start of a segment, which has at most maxSent bytes of whole characters.
func short(segment string) string {
	if len(segment) <= maxSent {
		return segment
	}
	n := maxSent
	for !utf8.RuneStart(segment[n]) {
		n--
	}
	return segment[:n]
}

// Flush stores the counts of this node since the last call. After an error they are stored by a later call.
func (g *Guard) Flush(ctx context.Context) error {
	g.spelledMu.Lock()
	taken := g.spelled
	g.spelled = nil
	g.spelledMu.Unlock()
	for key, s := range taken {
		if err := g.Store.Count(ctx, *s); err != nil {
			g.restore(taken)
			return err
		}
		delete(taken, key)
	}
	return nil
}

// restore adds counts that could not be stored.
func (g *Guard) restore(counts map[spelledKey]*Spelled) {
	g.spelledMu.Lock()
	defer g.spelledMu.Unlock()
	for key, s := range g.spelled {
		if old, known := counts[key]; known {
			s.Count += old.Count
		}
		counts[key] = s
	}
	g.spelled = counts
}
