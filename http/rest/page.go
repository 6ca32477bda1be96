package rest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"strings"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/page"
)

// Paging is embedded in the request of a growing list (D-GEN-11): newest first, page by page,
// with a cursor that is opaque to the client.
type Paging struct {
	Limit  int     `json:"limit" default:"200" minimum:"1" maximum:"1000" doc:"maximum number of records"`
	Cursor *string `json:"cursor" doc:"from the Link header of the previous page"`
	Count  *bool   `json:"count" doc:"true: return the total number in the header x-total-count"`

	query  url.Values // the fields of the request, those of its body too
	oldest bool       // first
}

func (p *Paging) sent(query url.Values) { p.query = query }

// Sorted is Paging for the queue of a list, whose oldest record is the next to be decided. Its Paging is for List.
type Sorted struct {
	Order string `json:"order" default:"newest" enum:"newest,oldest" doc:"sort order"`
	Paging
}

func (s *Sorted) sent(query url.Values) {
	s.Paging.sent(query)
	s.oldest = s.Order == "oldest"
}

// Recent is the Paging of login-history, which keeps the limit that the interface gives it.
type Recent struct {
	Limit  int     `json:"limit" default:"5" minimum:"1" maximum:"1000" doc:"maximum number of records"`
	Cursor *string `json:"cursor" doc:"from the Link header of the previous page"`
	Count  *bool   `json:"count" doc:"true: return the total number in the header x-total-count"`

	query url.Values
}

// Paging returns the same for List.
func (r Recent) Paging() Paging {
	return Paging{Limit: r.Limit, Cursor: r.Cursor, Count: r.Count, query: r.query}
}

func (r *Recent) sent(query url.Values) { r.query = query }

// asQuery is the request as a query, because a link carries no body (D-GEN-01, D-GEN-11). The
// plan has read the request before.
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
	c := newCursor(body)
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

// List answers one page of a growing list: read is the store's method, show makes
// a record's wire shape. The records read carry the cursor (page.Marked), so a
// section declares no position of its own.
//
// Errors: INVALID_FIELD for a cursor that the server did not make, and those of
// read.
func List[F, M any, T page.Marked[M], Out any](ctx context.Context, who Caller, in Paging, filter F,
	read func(context.Context, F, page.Query[M]) (page.Of[T], error), show func(T) Out) (Reply[[]Out], error) {
	after, err := markOf[M](Or(in.Cursor, ""))
	if err != nil {
		return Reply[[]Out]{}, err
	}
	q := page.Query[M]{After: after, Limit: in.Limit, Count: Or(in.Count, false), Oldest: in.oldest}
	got, err := read(ctx, filter, q)
	if err != nil {
		return Reply[[]Out]{}, err
	}
	var last any
	if got.More {
		last = got.Records[len(got.Records)-1].Mark()
	}
	return Reply[[]Out]{Body: Each(got.Records, show), Headers: in.headers(who, last, q.Count, got.Total)}, nil
}

// headers are those of a page; last is the mark of its last record if the list goes on.
func (in Paging) headers(who Caller, last any, count bool, total int) (list []Header) {
	if last != nil {
		next := maps.Clone(in.query)
		next.Set("cursor", cursorOf(last))
		next.Set("limit", strconv.Itoa(in.Limit))
		list = append(list, Header{"Link", "<" + who.Path + "?" + next.Encode() + `>; rel="next"`})
	}
	if count {
		list = append(list, Header{"X-Total-Count", strconv.Itoa(total)})
	}
	return list
}

// Each returns the wire shapes of records.
func Each[T, Out any](records []T, show func(T) Out) []Out {
	out := make([]Out, len(records))
	for i, r := range records {
		out[i] = show(r)
	}
	return out
}

// Or returns the value sent, or other when sent is nil.
func Or[T any](sent *T, other T) T {
	if sent == nil {
		return other
	}
	return *sent
}

// Set sets a field to the sent value; nil leaves it unchanged.
func Set[T any](field *T, sent *T) {
	if sent != nil {
		*field = *sent
	}
}

// NothingSent refuses an update that changes none of the fields.
func NothingSent(fields ...string) error {
	var ps fault.Problems
	for _, f := range fields {
		ps.Require(false, f, "is required if no other field is changed")
	}
	return fault.All(ps)
}

// cursorOf is a mark as JSON in base64url.
func cursorOf(mark any) string {
	text, err := json.Marshal(mark)
	if err != nil {
		panic(fmt.Sprintf("rest: the mark %T cannot be written: %v", mark, err))
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// markOf reads a cursor in the one spelling of cursorOf, so that nothing else
// reaches a query; nil for "". A NUL is refused, because PostgreSQL's texts hold none (SEC-27).
func markOf[M any](cursor string) (*M, error) {
	if cursor == "" {
		return nil, nil
	}
	mark := new(M)
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		err = json.Unmarshal(text, mark)
	}
	if err != nil || cursorOf(mark) != cursor || bytes.Contains(text, []byte(`\u0000`)) {
		return nil, fault.Invalid("cursor", "is not one of this list")
	}
	return mark, nil
}

// Feed is a part of a list that a client follows. Unlike a page of List, it has a cursor even
// at the end, so that the next request can continue.
type Feed[T any] struct {
	Data   []T    `json:"data"`
	Cursor string `json:"cursor" doc:"cursor of the last record or of the request; send it to continue"`
}

// Follow returns the records of a feed after a cursor; "" is its beginning.
//
// Errors: INVALID_FIELD for a cursor that the server did not make, and those of read.
func Follow[F, M any, T page.Marked[M], Out any](ctx context.Context, cursor string, limit int, filter F,
	read func(context.Context, F, page.Query[M]) (page.Of[T], error), show func(T) Out) (out Feed[Out], err error) {
	after, err := markOf[M](cursor)
	if err != nil {
		return out, err
	}
	got, err := read(ctx, filter, page.Query[M]{After: after, Limit: limit})
	if err != nil {
		return out, err
	}
	out = Feed[Out]{Data: Each(got.Records, show), Cursor: cursor}
	if n := len(got.Records); n > 0 {
		out.Cursor = cursorOf(got.Records[n-1].Mark())
	}
	return out, nil
}
