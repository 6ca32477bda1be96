// Package foureyes serves the extensions with which a second person decides on the requests
// that mfa.four_eyes selects (D-EXT-08).
//
// Start reading at Endpoints. Every rule is in domain/office/foureyes.
package foureyes

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/factor/intent"
	"castellan/domain/factor/mfa"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/page"
	"castellan/domain/office/foureyes"
	"castellan/http/rest"
)

const (
	section     = "Extensions: approvals"
	approvePath = "/admin/approvals/{id}/approve"
	fetchPath   = "/admin/approvals/{id}/fetch"
	// judgedByRequest is the reason why the id of a request names no user.
	judgedByRequest = "the users that the request itself names are judged for its approver too"
)

// FetchKey is the key of the endpoint that returns a secret to the requester.
const FetchKey = "POST " + fetchPath

// Group serves the section.
type Group struct {
	Service *foureyes.Service
	// Permit checks whether a caller may use an endpoint, by its key.
	Permit func(ctx context.Context, who rest.Caller, key string) error
	// Judge checks whether a caller may make a pending request, including the users that it names (D-AUTH-03).
	Judge func(ctx context.Context, who rest.Caller, request json.RawMessage) error
	// RunAs executes a request as the caller, if the caller may make it, and returns its response.
	RunAs func(ctx context.Context, who rest.Caller, request json.RawMessage) (json.RawMessage, error)
	// Fresh updates the snapshot that Permit uses.
	Fresh func(ctx context.Context) error
	// Look returns the fields of a pending request, without secrets, and its current changes. An
	// error beside fields is the refusal that the request would get.
	Look func(ctx context.Context, request json.RawMessage) (fields json.RawMessage, all []rest.Change, err error)
	// Details returns the fields of a pending request for the intent of its approval.
	Details func(request json.RawMessage) ([]challenge.Detail, error)
}

func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section(section,
		rest.Get("/admin/approvals", "List approval requests", rest.Tenant,
			g.list, fault.InvalidField).
			Try("limit=10").
			Doc("listApprovals", "Newest first. Requests are kept for 30 days."),
		rest.Get("/admin/approvals/{id}", "Get an approval request", rest.Tenant,
			g.show, fault.RecordNotFound).
			Try("id=01JD3X4Q7V0S8D4T2M6B9N1ZKA", fault.RecordNotFound).
			Doc("getApproval", "status shows the decision, result the response of the executed request, without secrets. "+
				"Until the request is executed, the requester and callers with permission for its endpoint see the request "+
				"body. For some endpoints they also see the changes it would make now."),
		rest.Start2FA("POST", approvePath, "Approve a request of another person after a challenge",
			rest.Tenant, foureyes.ActionApprove, g.approve, fault.RecordNotFound, fault.InvalidState,
			fault.MFANotAvailable).
			Try(`{"id":"01JD3X4Q7V0S8D4T2M6B9N1ZKA"}`, fault.RecordNotFound).
			Doc("approveRequest", "Starts a challenge. When it is complete, the request is executed, and execResult.data "+
				"is its record. If the response of the request holds a secret, the request is executed when the requester "+
				"fetches it (fetchApproval). The approver must not be the requester, must not share a device with the "+
				"requester, and needs permission for the same endpoint. If the requester has lost the permission, the status "+
				"is FAILED and execResult gives the reason.").NamesNoUser(judgedByRequest),
		rest.Post("/admin/approvals/{id}/refuse", "Reject or withdraw an approval request",
			rest.Tenant, g.refuse, fault.InvalidField, fault.RecordNotFound, fault.InvalidState).Decides().
			Try(`{"id":"01JD3X4Q7V0S8D4T2M6B9N1ZKA","reason":"The user is unknown"}`, fault.RecordNotFound).
			Doc("refuseRequest", "The requester can withdraw the request. Callers with permission for the same endpoint "+
				"can reject it. An approved request that was not fetched can be rejected too.").
			NamesNoUser(judgedByRequest),
		rest.Post(fetchPath, "Execute an approved request whose response holds a secret, and get the response", rest.Tenant,
			g.fetch, fault.RecordNotFound, fault.RecordAlreadyExist, fault.InvalidState).Decides().Idempotent().
			MarkSensitive().Secret("data.result").
			Try(`{"id":"01JD3X4Q7V0S8D4T2M6B9N1ZKA"}`, fault.RecordNotFound).
			Doc("fetchApproval", "For the requester only, once, while fetchUntil is present: 24 hours from the approval. "+
				"Until then the request has no effect, and a new key does not exist. Other calls show result without the "+
				"secret. Send an Idempotency-Key: a repeat with the same key gets the same response for 10 minutes. The errors "+
				"of the executed request are possible too; after an error the response can still be fetched.").
			NamesNoUser(judgedByRequest),
	).For(rest.Admin).Extended()
}

type listRequest struct {
	Status *string `json:"status" enum:"PENDING,APPROVED,REFUSED,EXPIRED,FAILED"`
	rest.Sorted
}

type record struct {
	ID          string     `json:"id" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	Method      string     `json:"method" example:"POST"`
	Path        string     `json:"path" example:"/admin/transaction/adjust-balance"`
	Summary     string     `json:"summary" doc:"summary of the change, as in the audit log" example:"ADJUST_BALANCE"`
	RequestedBy string     `json:"requestedBy" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	RequestedAt rest.Time  `json:"requestedAt" example:"2026-01-31T10:00:00.000Z"`
	ExpiresAt   rest.Time  `json:"expiresAt" example:"2026-01-31T10:15:00.000Z"`
	Status      string     `json:"status" enum:"PENDING,APPROVED,REFUSED,EXPIRED,FAILED"`
	DecidedBy   *string    `json:"decidedBy" doc:"null: undecided" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	DecidedAt   *rest.Time `json:"decidedAt" doc:"null: undecided" example:"2026-01-31T10:05:00.000Z"`
	Reason      *string    `json:"reason" doc:"reason of the rejection" example:"The user is unknown"`
	Result      rest.JSON  `json:"result" schema:"ApprovalResult"`
	FetchUntil  *rest.Time `json:"fetchUntil,omitempty" doc:"while it can be fetched" example:"2026-02-01T10:05:00.000Z"`

	Request *rest.JSON       `json:"request,omitempty" schema:"ApprovalRequest"`
	Changes []approvalChange `json:"changes,omitempty" doc:"for a single pending request: the changes it would make now"`
	Refusal *string          `json:"refusal,omitempty" doc:"reason for a refusal now" example:"the balance is too small"`
}

// approvalChange is the change that a request would make to one record.
type approvalChange struct {
	Of     string    `json:"of" doc:"kind of the record" example:"treasury"`
	ID     string    `json:"id" doc:"empty if of identifies the record" example:""`
	Before rest.JSON `json:"before" schema:"ApprovalState"`
	After  rest.JSON `json:"after" schema:"ApprovalState"`
}

func (record) SchemaName() string { return "Approval" }

// shown is a request with its result.
type shown struct {
	foureyes.Request
	result json.RawMessage
}

func (g Group) list(ctx context.Context, who rest.Caller, in listRequest) (out rest.Reply[[]record], err error) {
	q := foureyes.Query{Status: foureyes.Status(rest.Or(in.Status, "")), Now: g.Service.Changes.Now()}
	read := func(ctx context.Context, q foureyes.Query,
		p page.Query[foureyes.Place]) (opened page.Of[shown], err error) {
		got, err := g.Service.Store.List(ctx, q, p)
		opened.More, opened.Total = got.More, got.Total
		for i := 0; i < len(got.Records) && err == nil; i++ {
			var result json.RawMessage
			result, err = g.Service.Result(got.Records[i])
			opened.Records = append(opened.Records, shown{got.Records[i], result})
		}
		return opened, err
	}
	return rest.List(ctx, who, in.Paging, q, read, shown.record)
}

func (s shown) record() record {
	r := record{ID: s.ID, Method: s.Method, Path: s.Path, Summary: s.Summary, RequestedBy: s.RequestedBy,
		RequestedAt: rest.Time{Time: s.RequestedAt}, ExpiresAt: rest.Time{Time: s.ExpiresAt}, Status: string(s.Status),
		DecidedBy: rest.Filled(s.DecidedBy), DecidedAt: rest.At(s.DecidedAt), Reason: rest.Filled(s.Reason),
		Result: rest.JSON(s.result)}
	if s.Fetchable() {
		r.FetchUntil = &rest.Time{Time: s.FetchUntil()}
	}
	return r
}

func (g Group) recordOf(r foureyes.Request) (record, error) {
	result, err := g.Service.Result(r)
	return shown{r.At(g.Service.Changes.Now()), result}.record(), err
}

type oneRequest struct {
	ID string `json:"id" maxLength:"64"`
}

func (g Group) show(ctx context.Context, who rest.Caller, in oneRequest) (out record, err error) {
	r, err := g.Service.Store.Get(ctx, in.ID)
	if err != nil {
		return out, err
	}
	if out, err = g.recordOf(r); err != nil || who.UserID != r.RequestedBy && g.may(ctx, who)(r) != nil {
		return out, err
	}
	return out, g.look(ctx, who, r, &out)
}

// look adds the fields of a request that can still be executed, and its changes.
func (g Group) look(ctx context.Context, who rest.Caller, r foureyes.Request, out *record) error {
	asked, err := g.Service.Asked(r)
	if asked == nil || err != nil {
		return err
	}
	fields, all, err := g.Look(ctx, asked)
	if fields == nil {
		return err
	}
	out.Request = new(rest.JSON(fields))
	var refusal *fault.Error
	if errors.As(err, &refusal) && refusal.Code != fault.Internal {
		out.Refusal = new(rest.InLanguage(refusal.Message, who.Language))
		return nil
	}
	for _, c := range all {
		before, err1 := json.Marshal(c.Before)
		after, err2 := json.Marshal(c.After)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		out.Changes = append(out.Changes, approvalChange{c.Of, c.ID, before, after})
	}
	return err
}

// may checks whether a caller may make a pending request; for a decided request, whether the
// caller may use its endpoint.
func (g Group) may(ctx context.Context, who rest.Caller) func(foureyes.Request) error {
	return func(r foureyes.Request) error {
		if err := g.Permit(ctx, who, r.Key()); err != nil {
			return err
		}
		asked, err := g.Service.Asked(r)
		if asked == nil || err != nil {
			return err
		}
		return g.Judge(ctx, who, asked)
	}
}

// approval is the command of the challenge that guards an approval.
type approval struct {
	ID       string      `json:"id"`
	Summary  string      `json:"summary"`
	Approver rest.Caller `json:"approver"`
	// Details are the fields of the request, as the intent shows them. Digest is that of the sealed request.
	Details []challenge.Detail `json:"details"`
	Digest  string             `json:"digest"`
}

func (g Group) approve(ctx context.Context, who rest.Caller, in oneRequest) (a approval, err error) {
	r, err := g.Service.Judge(ctx, who.UserID, in.ID, g.may(ctx, who))
	if err != nil {
		return a, err
	}
	asked, err := g.Service.Asked(r)
	if err != nil {
		return a, err
	}
	a = approval{ID: r.ID, Summary: r.Summary, Approver: who, Digest: intent.Digest(r.Sealed)}
	a.Details, err = g.Details(asked)
	return a, err
}

type refuseRequest struct {
	ID     string `json:"id" maxLength:"64"`
	Reason string `json:"reason" maxLength:"500" example:"The user is unknown"`
}

func (g Group) refuse(ctx context.Context, who rest.Caller, in refuseRequest) (out rest.Data[record], err error) {
	r, err := g.Service.Refuse(ctx, who.By(), in.ID, in.Reason, g.may(ctx, who))
	if err != nil {
		return out, err
	}
	out.Data, err = g.recordOf(r)
	return out, err
}

func (g Group) fetch(ctx context.Context, who rest.Caller, in oneRequest) (out rest.Data[record], err error) {
	r, answer, err := g.Service.Fetch(ctx, who.By(), in.ID,
		func(ctx context.Context, request json.RawMessage) (json.RawMessage, error) {
			return g.RunAs(ctx, who, request)
		})
	if err != nil {
		return out, err
	}
	commit.After(ctx, func() { // so that this node accepts the secret at once; the others do within a second
		fresh, cancel := context.WithTimeout(context.Background(), freshTimeout)
		defer cancel()
		_ = g.Fresh(fresh)
	})
	out.Data = shown{r, answer}.record()
	return out, nil
}

// freshTimeout bounds Group.Fresh after a fetch.
const freshTimeout = time.Second

// maxTold bounds the text about a request in a push, in characters.
const maxTold = 300

// Action runs when the challenge of an approval is complete. It executes the request in the
// transaction of the approval.
func (g Group) Action() challenge.Action {
	read := func(command []byte) (a approval, err error) {
		err = json.Unmarshal(command, &a)
		return a, err
	}
	return challenge.Action{Code: foureyes.ActionApprove, Flow: challenge.FlowSession,
		Prepare: func(ctx context.Context, _ challenge.Execution) (any, error) { return nil, g.Fresh(ctx) },
		Exec: func(ctx context.Context, x challenge.Execution) (challenge.Result, error) {
			a, err := read(x.Command)
			if err != nil {
				return challenge.Result{}, err
			}
			r, err := g.Service.Approve(ctx, a.Approver.By(), a.ID, func(r foureyes.Request) error {
				if a.Digest != intent.Digest(r.Sealed) {
					return fault.New(fault.InvalidState, "the request differs from the one that was shown")
				}
				if err := g.Permit(ctx, a.Approver, "POST "+approvePath); err != nil {
					return err
				}
				return g.may(ctx, a.Approver)(r)
			})
			if err != nil {
				return challenge.Result{}, err
			}
			out, err := g.recordOf(r)
			if err != nil {
				return challenge.Result{}, err
			}
			data, err := json.Marshal(out)
			return challenge.Result{Success: true, Data: data}, err
		},
		Refused: func(ctx context.Context, x challenge.Execution, refusal error) error {
			a, err := read(x.Command)
			if err != nil {
				return err
			}
			return g.Service.Fail(ctx, a.Approver.By(), a.ID, refusal)
		},
		Describe: func(command []byte) []challenge.Detail {
			a, err := read(command)
			if err != nil {
				return nil
			}
			told := []rune(a.Summary)
			return append([]challenge.Detail{{Key: mfa.HeaderRequest, Value: string(told[:min(len(told), maxTold)])},
				{Key: mfa.HeaderReference, Value: a.ID}}, a.Details...)
		}}
}
