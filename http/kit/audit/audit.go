// Package audit serves the extension that lists the audit log for administrators: actor,
// action, subject, origin, time and outcome (D-EXT-01, D-EXT-03).
package audit

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/netip"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/http/rest"
)

const section = "Extensions: audit"

// Group serves the endpoints.
type Group struct {
	Store audit.Store
	// State verifies the last checkpoint.
	State func(context.Context) (audit.State, error)
}

func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section(section,
		rest.Get("/admin/audit", "List audit log entries, newest first", rest.Tenant, g.list, fault.InvalidField).
			Try("action=ROLE_ADD&limit=1").
			Doc("listAudit",
				"Each row records one security-relevant act. The rows of a chain are linked by hashes; castellan audit verify "+
					"detects removed or changed rows."),
		rest.Get("/admin/audit/chain", "Get the verification status of the audit log", rest.Tenant, g.chain).
			Doc("getAuditChain",
				"Verifies the last checkpoint: its MAC, its link to the previous checkpoint, and that no chain is shorter "+
					"than recorded. castellan audit verify verifies every row."),
	).For(rest.Admin).Extended()
}

type listRequest struct {
	UserID  *string    `json:"userId" doc:"the account concerned"`
	ActorID *string    `json:"actorId" doc:"the actor: a user id, or operator for the command line"`
	Action  *string    `json:"action" example:"LOGIN"`
	Request *string    `json:"requestId" doc:"returns only entries of this request" example:"01JD3XE5GNQ0V8X7C3W5T2B6RE"`
	IP      *string    `json:"ip" doc:"returns only entries from this client address" example:"203.0.113.7"`
	Target  *string    `json:"target" doc:"returns only entries about this record: a challenge, a transfer, a rule"`
	From    *rest.Time `json:"from" doc:"inclusive"`
	To      *rest.Time `json:"to" doc:"inclusive; a date includes the whole day"`
	rest.Paging
}

func (in listRequest) query() (q audit.Query, err error) {
	var ps fault.Problems
	text := func(field string, s *string) string {
		ps.Require(s == nil || *s != "", field, "must not be blank")
		return rest.Or(s, "")
	}
	q = audit.Query{UserID: text("userId", in.UserID), ActorID: text("actorId", in.ActorID),
		Action: text("action", in.Action), RequestID: text("requestId", in.Request), Target: text("target", in.Target)}
	if in.IP != nil {
		ip, err := netip.ParseAddr(*in.IP)
		ps.Require(err == nil, "ip", "is not an IP address")
		q.IP = ip.Unmap().WithZone("").String() // as the audit writes it
	}
	if err := fault.All(ps); err != nil {
		return q, err
	}
	q.From, q.To, err = rest.Span("from", in.From, in.To)
	return q, err
}

// auditEntry is a row. Neither its id nor its hash is a secret: a forged hash requires the key of the audit.
type auditEntry struct {
	ID        string    `json:"id" doc:"the chain and the number within the chain"`
	At        rest.Time `json:"at"`
	ActorID   string    `json:"actorId" doc:"empty if the client is not logged in"`
	UserID    string    `json:"userId" doc:"empty if no account is concerned"`
	Action    string    `json:"action"`
	Target    string    `json:"target" doc:"the record concerned"`
	Outcome   string    `json:"outcome" enum:"success,refused"`
	IP        string    `json:"ip"`
	RequestID string    `json:"requestId"`
	Detail    string    `json:"detail"`
	Hash      string    `json:"hash" doc:"HMAC-SHA256 over the row and the previous row of the chain, in hexadecimal"`
}

func show(r audit.Stored) auditEntry {
	return auditEntry{fmt.Sprintf("%s:%d", r.Chain, r.Seq), rest.Time{Time: r.At}, r.ActorID, r.UserID,
		r.Action, r.Target,
		string(r.Outcome),
		r.IP, r.RequestID, r.Detail, hex.EncodeToString(r.Hash)}
}

func (g Group) list(ctx context.Context, who rest.Caller, in listRequest) (out rest.Reply[[]auditEntry], err error) {
	q, err := in.query()
	if err != nil {
		return out, err
	}
	return rest.List(ctx, who, in.Paging, q, g.Store.List, show)
}

type chain struct {
	Counter int64      `json:"counter" doc:"number of the last checkpoint; 0: none yet" example:"1440"`
	MAC     string     `json:"mac" doc:"MAC of the last checkpoint, in hexadecimal" example:"9f86d081884c7d65"`
	At      *rest.Time `json:"at" doc:"time of the last checkpoint; null: none yet"`
	Holds   bool       `json:"holds" doc:"whether the audit log matches the checkpoint"`
	Problem *string    `json:"problem" doc:"the mismatch; null if the audit log matches" example:"checkpoint 7 is missing"`
}

func (g Group) chain(ctx context.Context, _ rest.Caller, _ rest.None) (chain, error) {
	s, err := g.State(ctx)
	return chain{s.Last.Counter, hex.EncodeToString(s.Last.MAC), rest.At(s.At), s.Broken == "", rest.Filled(s.Broken)}, err
}
