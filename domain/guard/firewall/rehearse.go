package firewall

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"castellan/domain/guard/ratelimit"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/geo"
	"castellan/domain/kit/page"
)

// Rehearsal is the effect that a rule would have had in the last 24 hours (D-WAF-19).
type Rehearsal struct {
	// Considered are the requests in the audit for the resources of the rule. Stopped are those of them that the rule
	// would have refused.
	Considered, Stopped int
	Users               int  // accounts among those stopped
	Accounts            int  // accounts among those considered
	You                 bool // the author's requests are among those stopped, or the rule locks the author out
	Truncated           bool // the audit has more rows than were read
	Examples            []audit.Stored
}

// Rehearser applies rules to the requests in the audit.
type Rehearser struct {
	Evaluator *Evaluator
	Audit     audit.Store
	App       string
	Known     Resources
	CountryOf func(netip.Addr) string
}

// Bounds of a rehearsal.
const (
	rehearsedTime = 24 * time.Hour
	rehearsedRows = 5000
	examples      = 5
)

// Rehearse returns the requests that a rule of an author would have refused together with the current rules. It treats
// the rule as active, not on trial and without an end. INVALID_FIELD as Admin.Add.
func (h Rehearser) Rehearse(ctx context.Context, by Client, r Rule) (out Rehearsal, err error) {
	r.Canonical(h.Known)
	if err := r.Check(); err != nil {
		return out, err
	}
	r.Status, r.DryRun, r.ExpireAt = Active, false, 0
	now := h.Evaluator.Now()
	rows, err := h.Audit.List(ctx, audit.Query{From: now.Add(-rehearsedTime)},
		page.Query[audit.Place]{Limit: rehearsedRows})
	if err != nil {
		return out, err
	}
	out.Truncated = rows.More
	present := h.Evaluator.Rules().Rules()
	others := make([]Rule, 0, len(present)+1)
	for _, o := range present {
		if o.Label != r.Label {
			others = append(others, o)
		}
	}
	nowMs := now.UnixMilli()
	all := append(others[:len(others):len(others)], r)
	without, with := Compile(others, h.App, nowMs), Compile(all, h.App, nowMs)
	counted := map[ratelimit.Key][]time.Time{}
	users, accounts := map[string]bool{}, map[string]bool{}
	for _, p := range requests(rows.Records) {
		c := h.client(p)
		if _, ok := r.concerns(h.App, p.resource, nowMs); !ok || h.Evaluator.Bypassed(c.IP) {
			continue
		}
		out.Considered++
		if p.UserID != "" {
			accounts[p.UserID] = true
		}
		if !refuses(without, with, r.Label, p.At, p.resource, c, nowMs, counted) {
			continue
		}
		out.Stopped++
		if p.UserID != "" {
			users[p.UserID] = true
		}
		out.Examples = append(out.Examples, p.Stored)
	}
	out.Users, out.Accounts = len(users), len(accounts)
	out.You = users[by.UserID] || !h.Evaluator.Bypassed(by.IP) && shutOut(h.App, by, others, all, nowMs)
	out.Examples = out.Examples[max(0, len(out.Examples)-examples):]
	slices.Reverse(out.Examples) // newest first, as the audit is listed
	return out, nil
}

// refuses reports whether a request is refused because of the rule of a label. It counts admitted requests like a
// counter (D-WAF-04).
func refuses(without, with *Snapshot, label string, at time.Time, resource string, c Client, nowMs int64,
	counted map[ratelimit.Key][]time.Time) bool {
	verdict, rates := with.Judge(resource, c, nowMs, nil)
	switch verdict {
	case Deny:
		before, _ := without.Judge(resource, c, nowMs, nil)
		return before != Deny
	case Allow:
		return false
	}
	i := slices.IndexFunc(rates, func(r *Rate) bool { return r.Label == label })
	if i < 0 {
		return false
	}
	key := rates[i].Key(c)
	left := counted[key]
	for len(left) > 0 && !left[0].After(at.Add(-rates[i].Period)) {
		left = left[1:]
	}
	over := int64(len(left)) >= rates[i].Limit
	if !over {
		left = append(left, at)
	}
	counted[key] = left
	return over
}

// past is a request in the audit; resource is "" if the audit does not name it.
type past struct {
	audit.Stored
	resource string
}

// requests returns the requests of some audit rows, oldest first, each once. Acts of the service or its operator are
// not requests.
func requests(rows []audit.Stored) []past {
	var all []past
	at := map[string]int{}
	for _, row := range slices.Backward(rows) {
		if row.RequestID == "" || row.IP == "" {
			continue
		}
		p := past{row, resourceOf(row.Record)}
		if i, known := at[row.RequestID]; known {
			if all[i].resource == "" {
				all[i].resource = p.resource
			}
			continue
		}
		at[row.RequestID] = len(all)
		all = append(all, p)
	}
	return all
}

// client returns the client of the request as the firewall saw it: a login has no session.
func (h Rehearser) client(p past) (c Client) {
	c.IP, _ = netip.ParseAddr(p.IP)
	if p.resource != placed["LOGIN"] && p.resource != placed["RESET_PASSWORD"] && p.resource != placed["REGISTER"] {
		c.UserID = p.ActorID
	}
	if code := h.CountryOf(c.IP); geo.Assigned(code) {
		c.Country = code
	}
	return c
}

// placed maps the name of an act to its endpoint. It omits acts with several endpoints, and reads, which leave no
// row.
// #nosec G101: names of actions and of endpoints; no credential.
var placed = map[string]string{
	"LOGIN": "POST /auth/login", "LOGOUT": "POST /auth/logout",
	"RESET_PASSWORD": "POST /auth/password/reset", "UPDATE_PASSWORD": "POST /auth/password/update",
	"REGISTER":   "POST /auth/register",
	"TOTP_SETUP": "POST /auth/totp/setup", "TOTP_DEACTIVATE": "POST /auth/totp/deactivate",
	"DEVICE_ADD": "POST /auth/devices", "DEVICE_REMOVE": "DELETE /auth/devices",
	"GEOFILTER_ADD": "POST /user/geofilter/countries", "GEOFILTER_REMOVE": "DELETE /user/geofilter/countries",
	"WITHDRAWAL_ADDRESS_ADD":    "POST /asset/withdrawal-addresses",
	"WITHDRAWAL_ADDRESS_UPDATE": "PATCH /asset/withdrawal-addresses",
	"WITHDRAWAL_ADDRESS_REMOVE": "DELETE /asset/withdrawal-addresses",
	"DOCUMENT_UPLOAD":           "POST /document/upload-document",
	"ADJUST_BALANCE":            "POST /admin/transaction/adjust-balance",
	"TRANSACTION_STATUS":        "POST /admin/update-status-transaction",
	"WITHDRAWAL_QUEUE_STATUS":   "POST /admin/update-wallet-withdrawal-crypto-queue",
	"KYC_UPDATE":                "POST /user/update-kyc",
	"ROLE_ADD":                  "POST /admin/roles", "ROLE_DELETE": "DELETE /admin/roles",
	"USER_ROLE_ADD": "POST /admin/user-roles", "USER_ROLE_DELETE": "DELETE /admin/user-roles",
	"PERMISSION_SET":    "POST /admin/role-resource-permission",
	"PERMISSION_DELETE": "DELETE /admin/role-resource-permission",
	"FIREWALL_RULE_ADD": "POST " + RulesPath, "FIREWALL_RULE_UPDATE": "PATCH " + RulesPath,
	"PARAMETER_UPDATE": "POST /admin/update-parameters",
}

// Placed returns the endpoints of the acts in the audit.
func Placed() map[string]string { return placed }

// resourceOf returns the endpoint of a row. Refusals and audited calls name it.
func resourceOf(r audit.Record) string {
	if method, path, ok := strings.Cut(r.Target, " "); ok && (r.Action == "DENIED" || r.Action == "CALL") {
		return method + " " + path
	}
	return placed[r.Action]
}
