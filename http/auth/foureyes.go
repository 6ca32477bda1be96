package auth

import (
	"bytes"
	"cmp"
	"context"
	"net/url"
	"strings"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/office/foureyes"
	"castellan/http/edge"
	"castellan/http/rest"
)

// SecondPerson makes calls pending until a second person approves them (D-EXT-08).
type SecondPerson struct {
	Service *foureyes.Service
	Commit  commit.Committer
}

var _ edge.SecondPerson = SecondPerson{}

// standing is the answer of a pending call.
type standing struct {
	ApprovalID string    `json:"approvalId"`
	ExpiresAt  rest.Time `json:"expiresAt"`
}

// Rehearse summarizes the changes by the audit rows that the call would write; "" if it would
// write nothing at all.
func (p SecondPerson) Rehearse(ctx context.Context, c edge.Captured,
	fn func(context.Context) error) (summary string, err error) {
	writes, err := commit.Rehearse(audit.WithApprover(ctx, audit.Rehearsed), p.Commit, fn)
	if err != nil {
		return "", err
	}
	if len(writes) == 0 {
		return "", nil
	}
	var rows []audit.Record
	for _, w := range writes {
		if row, is := w.(audit.Record); is {
			rows = append(rows, row)
		}
	}
	said := foureyes.Summary(rows, func(target string) bool { return names(c, target) })
	return cmp.Or(said, c.Method+" "+c.Path), nil
}

// names reports whether a request itself names a record.
func names(c edge.Captured, target string) bool {
	if target == "" {
		return false
	}
	query, _ := url.QueryUnescape(c.Query) // "" for one that is not valid
	for _, param := range c.Params {
		if param == target {
			return true
		}
	}
	return bytes.Contains(c.Body, []byte(target)) || strings.Contains(query, target)
}

func (p SecondPerson) Stand(ctx context.Context, c edge.Captured, command []byte, summary string) (any, error) {
	r, err := p.Service.Submit(ctx, c.Caller.By(), foureyes.Draft{Method: c.Method, Path: c.Path, Summary: summary,
		Request: command, SessionID: c.Caller.SessionID})
	return rest.Data[standing]{Data: standing{r.ID, rest.Time{Time: r.ExpiresAt}}}, err
}
