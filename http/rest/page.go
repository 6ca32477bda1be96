package rest

import (
	"encoding/base64"
	"net/url"
	"strconv"

	"castellan/domain/fault"
)

// Paging is embedded in the request of a growing list (D-GEN-11): newest
// first, so many at a time, the next ones behind a cursor that only the server
// reads.
type Paging struct {
	Limit  int     `json:"limit" default:"200" minimum:"1" maximum:"1000" doc:"how many at most"`
	Cursor *string `json:"cursor" doc:"from the Link header of the page before"`
	Count  *bool   `json:"count" doc:"true: the number of all in the header x-total-count"`
}

// After is what the cursor says; "" for the first page.
//
// Errors: INVALID_FIELD for a cursor that the server did not make.
func (p Paging) After() (string, error) {
	if p.Cursor == nil || *p.Cursor == "" {
		return "", nil
	}
	b, err := base64.RawURLEncoding.DecodeString(*p.Cursor)
	if err != nil {
		return "", p.Foreign()
	}
	return string(b), nil
}

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
		q, err := url.ParseQuery(who.RawQuery)
		if err != nil {
			q = url.Values{}
		}
		q.Set("cursor", base64.RawURLEncoding.EncodeToString([]byte(mark(rows[len(rows)-1]))))
		q.Set("limit", strconv.Itoa(p.Limit))
		out.Headers = append(out.Headers, Header{"Link", "<" + who.Path + "?" + q.Encode() + `>; rel="next"`})
	}
	if p.Counting() {
		out.Headers = append(out.Headers, Header{"X-Total-Count", strconv.Itoa(total)})
	}
	return out
}
