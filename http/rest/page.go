package rest

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"castellan/domain/fault"
)

// Paging is embedded in the request of a growing list (D-GEN-11): newest
// first, so many at a time, the next ones behind a cursor that only the server
// reads.
type Paging struct {
	Limit  int     `json:"limit" default:"200" minimum:"1" maximum:"1000" doc:"how many at most"`
	Cursor *string `json:"cursor" doc:"from the Link header of the page before"`
	Count  *bool   `json:"count" doc:"true: the number of all in the header x-total-count"`

	query url.Values // asks for what the request asked for, wherever it did
}

func (p *Paging) sent(query url.Values) { p.query = query }

// asQuery is what a request sent as if all had come in its query, because a link
// carries no body (D-GEN-01, D-GEN-11). The request was read by the plan before.
func (p *plan) asQuery(raw string, body []byte) url.Values {
	q := url.Values{}
	var given bitset
	for pair := range strings.SplitSeq(raw, "&") {
		key, value, _ := strings.Cut(pair, "=")
		key, okKey := unquery(key)
		value, ok := unquery(value)
		if !okKey || !ok || key == "" {
			continue
		}
		q.Add(key, value)
		if i, known := p.index[strings.TrimSuffix(key, "[]")]; known {
			given.set(i)
		}
	}
	if len(body) == 0 {
		return q
	}
	c := cursor{b: body}
	for more := c.open(); more; more = c.next() {
		key := string(c.key())
		i, known := p.index[key]
		switch ch := c.peek(); {
		case !known || given.has(i) || ch == 'n':
			c.raw()
		case p.fields[i].slice && ch != '[':
			q.Set(key, "["+string(c.raw())+"]") // a comma in its text separates nothing
		case ch == '"':
			q.Set(key, c.str())
		default:
			value := string(c.raw())
			if d, err := ParseDecimal(value); err == nil { // a query knows plain digits only
				value = string(d)
			}
			q.Set(key, value)
		}
	}
	return q
}

// After reads the cursor into the pointers, by the form of fmt in which the
// list's mark writes their values; given is false for the first page. Only the
// one spelling that the mark would give these values is read: what else Sscanf
// would take, and what no column can hold, never reaches a query (SEC-27).
//
// Errors: INVALID_FIELD for a cursor that the server did not make.
func (p Paging) After(form string, into ...any) (given bool, err error) {
	if p.Cursor == nil || *p.Cursor == "" {
		return false, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(*p.Cursor)
	if err != nil || !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0 {
		return false, p.Foreign()
	}
	text := string(b)
	if _, err := fmt.Sscanf(text, form, into...); err != nil {
		return false, p.Foreign()
	}
	values := make([]any, len(into))
	for i, v := range into {
		values[i] = reflect.ValueOf(v).Elem().Interface()
	}
	if fmt.Sprintf(form, values...) != text || cursorOf(text) != *p.Cursor {
		return false, p.Foreign()
	}
	return true, nil
}

func cursorOf(mark string) string { return base64.RawURLEncoding.EncodeToString([]byte(mark)) }

// Foreign refuses a cursor whose content makes no sense.
func (p Paging) Foreign() error { return fault.Invalid("cursor", "is not one of this list") }

// Counting tells whether the number of all is wanted.
func (p Paging) Counting() bool { return p.Count != nil && *p.Count }

// Page is the answer of a growing list: rows were read one more than the
// limit, and mark says of the last one shown where the next page begins. total
// is sent where the request asked for it.
func Page[Row, T any](who Caller, p Paging, rows []Row, total int, show func(Row) T, mark func(Row) string) Reply[[]T] {
	more := len(rows) > p.Limit
	if more {
		rows = rows[:p.Limit]
	}
	out := Reply[[]T]{Body: make([]T, len(rows))}
	for i, r := range rows {
		out.Body[i] = show(r)
	}
	if more {
		q := url.Values{}
		maps.Copy(q, p.query)
		q.Set("cursor", cursorOf(mark(rows[len(rows)-1])))
		q.Set("limit", strconv.Itoa(p.Limit))
		out.Headers = append(out.Headers, Header{"Link", "<" + who.Path + "?" + q.Encode() + `>; rel="next"`})
	}
	if p.Counting() {
		out.Headers = append(out.Headers, Header{"X-Total-Count", strconv.Itoa(total)})
	}
	return out
}
