package integration

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/legible"
	"castellan/domain/money/transaction"
	"castellan/http/rest"
	"castellan/http/wire"
)

// Withdrawals serves the withdrawals that other services request, the status updates of the
// wallet, and resume and cancel for administrators (D-INT-04).
type Withdrawals struct {
	Service *transaction.Withdrawals
	// Approvals serve the requests that the owner approves. Owner returns the user of an x-auth
	// token or of a foreign one (D-EXT-12), and the starter of that user's challenge. Errors
	// of Owner are those of the guard of x-auth, and SUBJECT_UNKNOWN.
	Approvals *transaction.Approvals
	Owner     func(ctx context.Context, who rest.Caller, userToken string) (userID string, s challenge.Starter, err error)
	Numbers   wire.Numbers
}

// refusals are the refusals of a request, in the order of the checks, and then those of a
// userToken and its challenge.
var refusals = []fault.Code{fault.InvalidField, fault.InvalidState, fault.RecordNotFound, fault.AccountNotActive,
	fault.WithdrawalProhibited, fault.AMLRisky, fault.PairDisabled, fault.BelowMinimum, fault.LimitExceeded,
	fault.AddressNotAllowed, fault.InsufficientBalance, fault.PolicyDenied, fault.OwnerRequired, fault.Unauthenticated,
	fault.TokenExpired, fault.TokenRevoked, fault.SubjectUnknown, fault.MFANotAvailable, fault.RateLimited,
	fault.Overloaded}

func (g Withdrawals) Endpoints() []rest.Endpoint {
	const path = "/integration/withdrawals"
	own := rest.Section(section,
		rest.Post("/asset/withdrawals/{id}/cancel", "Cancel the caller's withdrawal", rest.User, g.cancelOwn,
			fault.RecordNotFound, fault.InvalidState).Idempotent().
			Try(`{"id":"unknown"}`, fault.RecordNotFound).
			Doc("cancelOwnWithdrawal", "Releases the hold. The withdrawal must be queued or waiting for approval.")).Extended()
	return append(own, rest.Section(section,
		rest.NamesBy(rest.Post(path, "Request a withdrawal", rest.TenantOrService, g.request, refusals...).
			Try(`{"externalId":"withdrawal-1","userId":"${user.id}","currencyCode":"BTC","network":"BTC","amount":0.01,`+
				`"address":"bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"}`, fault.LimitExceeded).
			Gives("p-auth").
			Doc("requestWithdrawal", "Holds the amount and the fee, and queues the withdrawal. The same request with the "+
				"same externalId returns the same record. If several refusals apply, the first in the order of the codes is "+
				"returned. LIMIT_EXCEEDED includes resetAt, except without a rate for the currency. "+
				"With userToken in place of userId, the account owner must approve "+
				"first. The response is then a challenge of the action WITHDRAW, with its token in the header p-auth, and "+
				"nothing is held. When the owner completes the challenge, the request is validated again and queued, and "+
				"execResult.data is the record. Until then, the same request returns the open challenge; afterwards, it "+
				"returns the record. If the challenge ends without a withdrawal, the same request starts another "+
				"challenge. If the money policy asks for approvals or a wait, the withdrawal is waitingApproval with hold, and "+
				"withdrawal.queued follows at its release. OWNER_REQUIRED: send userToken in place of userId."), g.named),
		rest.Get(path+"/{id}", "Get a withdrawal", rest.TenantOrService, g.get, fault.RecordNotFound).
			Try("id=unknown", fault.RecordNotFound).
			Doc("getIntegrationWithdrawal", "Requires the id, not the externalId."),
		rest.NamesBy(rest.Patch(path+"/{id}", "Update the status of a withdrawal", rest.TenantOrService, g.move,
			fault.InvalidField, fault.RecordNotFound, fault.InvalidState).
			Try(`{"id":"unknown","status":"processing"}`, fault.RecordNotFound).
			Doc("moveWithdrawal", "The wallet claims a withdrawal with processing before it signs. sent requires txId. "+
				"finalized posts the withdrawal. failed requires reason and releases the hold; it is refused after sent. "+
				"Repeating the last change with the same fields returns the record. Send from with the status that you "+
				"expect: if the withdrawal has another one, the response is 409 INVALID_STATE and nothing changes. A request "+
				"that arrives late then has no effect in another status. A claim reads the account again. If the account is "+
				"blocked, may not withdraw, is at risk, or its owner has raised the alarm, the withdrawal becomes "+
				"waitingApproval with hold. The response is then 409 INVALID_STATE, with the record in data. With claimToken, a "+
				"repetition of the claim needs the same token, so only one worker has the claim. The response then has order, "+
				"a JWT of the type withdrawal-order+jwt that is signed by a key of /.well-known/jwks.json and valid for 10 "+
				"minutes. Sign only what it says. A claim is judged by the money policy, too, and may be held for it."), g.moved),
		rest.Shows(rest.NamesBy(rest.Post("/admin/withdrawals/{id}/resume", "Resume a withdrawal", rest.Tenant, g.resume,
			fault.RecordNotFound, fault.InvalidState, fault.AccountNotActive, fault.WithdrawalProhibited,
			fault.AMLRisky, fault.PolicyDenied).Idempotent().
			Try(`{"id":"unknown"}`, fault.RecordNotFound).
			Doc("resumeWithdrawal", "Returns a withdrawal to the wallet. It must be waiting for approval, have timed out, "+
				"or have found the hot wallet underfunded. A held withdrawal can be resumed when the reason of its hold no "+
				"longer applies to the account. The resume itself ends a hold after an alarm. If rules of the money policy ask "+
				"for approvals, it is the approval of the caller, who must be in the group and neither the owner nor the "+
				"initiator. The withdrawal returns with the last approval and stays waitingApproval until then. With "+
				"mfa.guarded, the intent of the caller's challenge shows the order. It is 409 INVALID_STATE if the order has "+
				"changed meanwhile. Any other resume is a decision that rules may deny, or for which they require a second "+
				"person (202)."), g.decided), g.ordered).
			GovernedBy(g.resumed),
		rest.NamesBy(rest.Post("/admin/withdrawals/{id}/cancel", "Cancel a withdrawal", rest.Tenant, g.cancel,
			fault.RecordNotFound, fault.InvalidState).Idempotent().
			Try(`{"id":"unknown"}`, fault.RecordNotFound).
			Doc("cancelWithdrawal", "Releases the hold. A withdrawal that the wallet has claimed cannot be cancelled."),
			g.decided),
	).For(rest.Admin).Extended()...)
}

// withdrawal is the wire shape of a withdrawal for other services.
type withdrawal struct {
	ID         string        `json:"id" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	ExternalID string        `json:"externalId" example:"withdrawal-1"`
	Status     string        `json:"status" doc:"see the transitions in docs/neighbours.md" example:"queued"`
	StatusCode int           `json:"statusCode" doc:"the number of transactionStatus in the queue" example:"8"`
	Amount     amount.Amount `json:"amount" example:"0.01"`
	Fee        amount.Amount `json:"fee" example:"0.0001"`
	TxID       *string       `json:"txId" example:"4a5e1e4b"`
	Reason     *string       `json:"reason" doc:"reason of the last status change" example:"Refilled"`
	CreatedAt  rest.Time     `json:"createdAt"`
	Hold       *wire.Hold    `json:"hold" doc:"why the withdrawal is held back from the wallet; else null"`
	Order      *string       `json:"order" doc:"a JWT after a claim with claimToken" example:"eyJhbGciOiJFZER…"`
}

func (g Withdrawals) show(o transaction.Outgoing, err error) (rest.Data[withdrawal], error) {
	return rest.Data[withdrawal]{Data: g.record(o)}, err
}

func (g Withdrawals) record(o transaction.Outgoing) withdrawal {
	q := o.Queued
	w := withdrawal{ID: q.ID, ExternalID: q.ExternalID, Status: q.Status.String(), StatusCode: g.Numbers.Queue(q.Status),
		Amount: o.Withdrawal.Amount, Fee: o.Fee(), TxID: rest.Filled(q.TxID), Reason: rest.Filled(q.Reason),
		CreatedAt: rest.Time{Time: q.At}, Hold: wire.HoldOf(q.Held)}
	if q.Status == transaction.QueueSuccess {
		w.Status = finalized
	}
	return w
}

const finalized = "finalized"

// integrationWithdrawalRequested is the answer of a request: the record, or the challenge of the owner.
type integrationWithdrawalRequested struct {
	Data      *withdrawal     `json:"data,omitempty" doc:"present once the withdrawal is queued"`
	Challenge *wire.Challenge `json:"challenge,omitempty" doc:"challenge of the account owner, until it is approved"`
}

type withdrawalRequest struct {
	ExternalID   string        `json:"externalId" maxLength:"128" example:"withdrawal-1"`
	UserID       *string       `json:"userId" maxLength:"64" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	UserToken    *string       `json:"userToken" maxLength:"8192" doc:"x-auth or foreign token" example:"eyJhbGciOiJFZER…"`
	CurrencyCode string        `json:"currencyCode" maxLength:"64" example:"BTC"`
	Network      string        `json:"network" maxLength:"64" example:"BTC"`
	Amount       amount.Amount `json:"amount" example:"0.01"`
	Address      *string       `json:"address" maxLength:"256" example:"bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"`
	AddressTag   *string       `json:"addressTag" maxLength:"256" doc:"memo or tag of the address" example:"104723"`
	AddressID    *rest.ID      `json:"addressId" doc:"id of an entry in the user's address book" example:"12"`
}

// Validate requires an address or an entry of the address book.
func (in withdrawalRequest) Validate() error {
	var ps fault.Problems
	ps.Require(len(in.ExternalID) <= 128, "externalId", "must be at most 128 bytes")
	for _, f := range []struct {
		field string
		text  *string
	}{{"externalId", &in.ExternalID}, {"address", in.Address}, {"addressTag", in.AddressTag}} {
		ps.Require(legible.Valid(strings.TrimSpace(rest.Or(f.text, ""))), f.field, "must not contain control characters")
	}
	ps.Require(in.UserID != nil || in.UserToken != nil, "userId", "is required without userToken")
	ps.Require(in.UserID == nil || in.UserToken == nil, "userToken", "must not be sent with userId")
	ps.Require(in.Amount.Sign() > 0, "amount", "must be greater than 0")
	none := strings.TrimSpace(rest.Or(in.Address, "")) == ""
	ps.Require(!none || in.AddressID != nil, "address", "is required without addressId")
	ps.Require(none || in.AddressID == nil, "addressId", "must not be sent with address")
	ps.Require(!none || rest.Or(in.AddressID, 1) > 0, "addressId", "is not an entry of an address book")
	return fault.All(ps)
}

// named returns the user of a request, also if it has the token of that user.
func (g Withdrawals) named(ctx context.Context, who rest.Caller, in withdrawalRequest) (n rest.Named, err error) {
	userID := rest.Or(in.UserID, "")
	if in.UserToken != nil {
		userID, _, err = g.owned(ctx, who, *in.UserToken)
	}
	return rest.Named{Users: []string{userID}, Matter: rest.Standing}, err
}

// owned is Owner with refusals that name the field, because the caller has its own credential.
func (g Withdrawals) owned(ctx context.Context, who rest.Caller,
	userToken string) (userID string, from challenge.Starter, err error) {
	userID, from, err = g.Owner(ctx, who, userToken)
	if f, is := err.(*fault.Error); is {
		named := *f
		named.Field = "userToken"
		err = &named
	}
	return userID, from, err
}

func (g Withdrawals) request(ctx context.Context, who rest.Caller,
	in withdrawalRequest) (out rest.Reply[integrationWithdrawalRequested], err error) {
	r := transaction.WithdrawalRequest{ExternalID: in.ExternalID, UserID: rest.Or(in.UserID, ""),
		CurrencyCode: strings.TrimSpace(in.CurrencyCode), NetworkCode: strings.TrimSpace(in.Network),
		Amount: in.Amount, Address: strings.TrimSpace(rest.Or(in.Address, "")),
		AddressTag: strings.TrimSpace(rest.Or(in.AddressTag, "")), AddressID: int64(rest.Or(in.AddressID, 0))}
	if in.UserToken != nil {
		return g.approve(ctx, who, r, *in.UserToken)
	}
	o, err := g.Service.Request(ctx, who.By(), r)
	if err != nil {
		return out, err
	}
	out.Body.Data = new(g.record(o))
	return out, nil
}

// approve starts the approval of a request by the owner of a token.
func (g Withdrawals) approve(ctx context.Context, who rest.Caller, r transaction.WithdrawalRequest,
	userToken string) (out rest.Reply[integrationWithdrawalRequested], err error) {
	if commit.Inside(ctx) { // a challenge of the caller, or a second person, precedes the call
		return out, fault.Invalid("userToken", "must be sent by a service")
	}
	var from challenge.Starter
	if r.UserID, from, err = g.owned(ctx, who, userToken); err != nil {
		return out, err
	}
	a, err := g.Approvals.Start(ctx, who.By(), r, from)
	switch {
	case err != nil:
		return out, err
	case a.Made != nil:
		out.Body.Data = new(g.record(*a.Made))
		return out, nil
	}
	started := wire.Started(a.Challenge)
	out.Body.Challenge, out.Headers = &started.Body.Challenge, started.Headers
	if a.Repeated {
		out.Body.Challenge = new(wire.Renewed(a.Challenge.Challenge, "", g.Service.Now()).Challenge)
	}
	return out, nil
}

// Action is the action behind WITHDRAW: the owner has approved, and the withdrawal goes into
// the queue. Its record is the data of the outcome.
func (g Withdrawals) Action() challenge.Action {
	return challenge.Action{Code: transaction.ActionWithdraw, Describe: g.Approvals.Describe, Brief: g.Approvals.Brief,
		Exec: func(ctx context.Context, x challenge.Execution) (r challenge.Result, err error) {
			o, err := g.Approvals.Execute(ctx, x)
			if err == nil {
				r.Success = true
				r.Data, err = json.Marshal(g.record(o))
			}
			return r, err
		},
		Refused: func(ctx context.Context, x challenge.Execution, refusal error) error {
			return g.Approvals.Refused(ctx, x, refusal)
		}}
}

type withdrawalID struct {
	ID string `json:"id" maxLength:"64"`
}

func (g Withdrawals) get(ctx context.Context, _ rest.Caller, in withdrawalID) (rest.Data[withdrawal], error) {
	return g.show(g.Service.Get(ctx, in.ID))
}

func (g Withdrawals) cancelOwn(ctx context.Context, who rest.Caller, in withdrawalID) (rest.Data[withdrawal], error) {
	return g.show(g.Service.CancelOwn(ctx, who.By(), in.ID))
}

// owner returns the user of a withdrawal.
func (g Withdrawals) owner(ctx context.Context, id string) (rest.Named, error) {
	o, err := g.Service.Get(ctx, id)
	return rest.Named{Users: []string{o.Queued.UserID}, Matter: rest.Standing}, err
}

// statuses are the statuses that the wallet names.
var statuses = map[string]transaction.QueueStatus{
	"queued": transaction.QueueReady, "processing": transaction.QueueProcessing, "sent": transaction.QueueSent,
	finalized: transaction.QueueSuccess, "failed": transaction.QueueFailed, "timeOut": transaction.TimeOut,
	"hotWalletInsufficientBalance": transaction.HotWalletIsEmpty,
}

type moveRequest struct {
	ID     string  `json:"id" maxLength:"64"`
	Status string  `json:"status" enum:"processing,sent,finalized,failed,timeOut,hotWalletInsufficientBalance"`
	From   *string `json:"from" enum:"queued,processing,sent,timeOut,hotWalletInsufficientBalance" doc:"expected status"`
	TxID   *string `json:"txId" maxLength:"256" doc:"required for sent" example:"4a5e1e4b"`
	Claim  *string `json:"claimToken" maxLength:"128" doc:"with processing: random, of the worker" example:"3f1c9a7e"`
	Reason *string `json:"reason" maxLength:"500" doc:"required for failed" example:"The node refused it"`
}

// Validate requires the transaction for sent and the reason for failed.
func (in moveRequest) Validate() error {
	var ps fault.Problems
	ps.Require(in.Status != "sent" || strings.TrimSpace(rest.Or(in.TxID, "")) != "", "txId", "is required")
	ps.Require(in.Status == "processing" || in.Claim == nil, "claimToken", "is only for processing")
	ps.Require(in.Status != "failed" || strings.TrimSpace(rest.Or(in.Reason, "")) != "", "reason", "is required")
	return fault.All(ps)
}

func (g Withdrawals) moved(ctx context.Context, _ rest.Caller, in moveRequest) (rest.Named, error) {
	return g.owner(ctx, in.ID)
}

func (g Withdrawals) move(ctx context.Context, who rest.Caller, in moveRequest) (rest.Data[withdrawal], error) {
	m := transaction.WalletMove{ID: in.ID, To: statuses[in.Status], Claim: rest.Or(in.Claim, ""),
		TxID:   strings.TrimSpace(rest.Or(in.TxID, "")),
		Reason: strings.TrimSpace(rest.Or(in.Reason, ""))}
	if in.From != nil {
		m.From = statuses[*in.From]
	}
	o, err := g.shown(g.Service.Move(ctx, who.By(), m))
	out, err := g.show(o, err)
	if err != nil || m.Claim == "" {
		return out, err
	}
	order, err := g.Service.Sign(who.By(), o)
	out.Data.Order = &order
	return out, err
}

// shown adds the record of a held withdrawal to the refusal of a move.
func (g Withdrawals) shown(o transaction.Outgoing, err error) (transaction.Outgoing, error) {
	var refused *fault.Error
	if o.Queued.Held.Reason == "" || !errors.As(err, &refused) {
		return o, err
	}
	with := *refused
	with.Record = g.record(o)
	return o, &with
}

type decideRequest struct {
	ID     string  `json:"id" maxLength:"64"`
	Reason *string `json:"reason" maxLength:"500" doc:"for the audit log" example:"The hot wallet was refilled"`
}

func (g Withdrawals) decided(ctx context.Context, _ rest.Caller, in decideRequest) (rest.Named, error) {
	return g.owner(ctx, in.ID)
}

// ordered returns the order of a withdrawal for the intent of an operator.
func (g Withdrawals) ordered(ctx context.Context, in decideRequest) (out rest.Shown, err error) {
	rows, digest, err := g.Service.Shown(ctx, in.ID)
	for _, r := range rows {
		if r.Value != "" {
			out.Rows = append(out.Rows, rest.ShownRow{Key: r.Key, Value: r.Value})
		}
	}
	out.Digest = digest
	return out, err
}

// resumed returns the decision of a resume. One that approves what the money policy holds is no other decision.
func (g Withdrawals) resumed(ctx context.Context, in any) (is rest.Governed, err error) {
	o, err := g.Service.Get(ctx, in.(*decideRequest).ID)
	switch {
	case fault.CodeOf(err) == fault.RecordNotFound:
		return is, nil
	case err == nil && (o.Queued.Status != transaction.QueueWaiting || o.Queued.Held.Reason != transaction.HeldPolicy):
		is.Kind = "DECISION"
	}
	return is, err
}

func (g Withdrawals) resume(ctx context.Context, who rest.Caller, in decideRequest) (rest.Data[withdrawal], error) {
	s := rest.ShownIn(ctx)
	return g.show(g.shown(g.Service.ResumeSigned(ctx, who.By(), in.ID, strings.TrimSpace(rest.Or(in.Reason, "")),
		transaction.Signed{Order: s.Digest, ChallengeID: s.ChallengeID, IntentDigest: s.IntentDigest})))
}

func (g Withdrawals) cancel(ctx context.Context, who rest.Caller, in decideRequest) (rest.Data[withdrawal], error) {
	return g.show(g.Service.Cancel(ctx, who.By(), in.ID, strings.TrimSpace(rest.Or(in.Reason, ""))))
}
