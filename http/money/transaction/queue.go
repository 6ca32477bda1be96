package transaction

import (
	"context"
	"strings"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/page"
	"castellan/domain/kit/parameter"
	"castellan/domain/money/policy"
	"castellan/domain/money/transaction"
	"castellan/http/rest"
	"castellan/http/wire"
)

type cryptoWithdrawalQueueEntry struct {
	ID          string `json:"id" doc:"id of the withdrawal" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	UserID      string `json:"userId" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	Code        string `json:"code" example:"BTC"`
	Address     string `json:"address" example:"bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"`
	Network     string `json:"network" example:"BTC"`
	ExplorerURL string `json:"explorerUrl" doc:"empty if there is none" example:"https://mempool.space/tx/4a5e1e4b"`
	Status      int    `json:"transactionStatus" doc:"4: success, 5: waitingApproval" example:"6"`
	Description string `json:"transactionDescription" example:"hotWalletInsufficientBalance"`
	// The fields below are an extension (D-INT-13).
	Amount    amount.Amount `json:"amount" doc:"amount without the fee" example:"0.25"`
	Fee       amount.Amount `json:"fee" doc:"the posted fee; before, the expected fee" example:"0.0001"`
	CreatedAt rest.Time     `json:"createdAt"`
	Reason    *string       `json:"reason" doc:"reason of the last status change" example:"Refilled"`
	FullName  *string       `json:"fullName" doc:"full name of the user" example:"Ayşe Yılmaz"`
	Email     *string       `json:"email" doc:"of the user; requires access to accounts" example:"ayse@example.com"`
	Phone     *string       `json:"phoneNumber" doc:"of the user; requires access to accounts" example:"+905321234567"`
	Hold      *queueHold    `json:"hold" doc:"why the withdrawal is held back from the wallet; else null"`
	Initiator string        `json:"initiator" doc:"USER, OPERATOR:userId, SERVICE:key; \"\": unknown" example:"USER"`
	Methods   []string      `json:"ownerMethods" doc:"methods by which the owner approved it" example:"[\"PUSH\"]"`
}

// queueHold is a hold with what its rules ask for.
type queueHold struct {
	wire.Hold
	Rules     []heldRule   `json:"rules" doc:"rules of the money policy that hold it"`
	Approvals []heldQuorum `json:"approvals" doc:"each is needed"`
	Approvers []string     `json:"approvedBy" doc:"operators whose approvals count"`
}

func (queueHold) SchemaName() string { return "QueuedWithdrawalHold" }

type heldRule struct {
	Label   string `json:"label" example:"Large withdrawals"`
	Version int64  `json:"version" example:"1"`
}

type heldQuorum struct {
	Group    string `json:"group" doc:"role of the approvers" example:"treasury"`
	Required int    `json:"required" example:"2"`
	Given    int    `json:"given" example:"1"`
	// ExpiresAt is the end of the hold unless a wait is longer.
	ExpiresAt rest.Time `json:"expiresAt" doc:"when the approvals expire" example:"2026-08-03T16:00:00.000Z"`
}

func holdOf(e transaction.Entry) *queueHold {
	h := wire.HoldOf(e.Queued.Held)
	if h == nil {
		return nil
	}
	return &queueHold{*h,
		rest.Each(e.Queued.Held.Asked().Rules, func(r policy.Named) heldRule { return heldRule(r) }),
		rest.Each(e.Progress, func(p transaction.Progress) heldQuorum {
			return heldQuorum{p.Group, p.Required, p.Given, rest.Time{Time: p.Expires}}
		}),
		append([]string{}, e.Approvers...)}
}

// explorer is the block explorer URL of a transaction.
func (g Group) explorer(network, txID string) string {
	return parameter.Explorer.In(g.Service.Parameters.Set()).Of(network, txID)
}

// showQueued includes contact data for callers who see it in the list of accounts.
func (g Group) showQueued(contacts bool) func(transaction.Entry) cryptoWithdrawalQueueEntry {
	return func(e transaction.Entry) cryptoWithdrawalQueueEntry {
		q := e.Queued
		pair, _ := g.Service.Currencies.Catalog().Pair(q.Asset)
		out := cryptoWithdrawalQueueEntry{q.ID, q.UserID, pair.Currency.Code, q.Address, pair.Network.Code,
			g.explorer(pair.Network.Code, q.TxID), g.Numbers.Queue(q.Status), q.Status.String(),
			e.Withdrawal.Amount, g.Service.Cost(e), rest.Time{Time: q.At}, rest.Filled(q.Reason),
			rest.Filled(e.FullName), nil, nil, holdOf(e), string(e.Withdrawal.Initiator), []string{}}
		if m := e.Withdrawal.OwnerMethods; m != "" {
			out.Methods = strings.Split(m, "+")
		}
		if contacts {
			out.Email, out.Phone = rest.Filled(e.Email), rest.Filled(e.Phone)
		}
		return out
	}
}

// contacts reports whether the caller may see the contact data of users.
func (g Group) contacts(who rest.Caller) bool {
	return g.Shows != nil && g.Shows(who, "GET /admin/list-users")
}

type queueRequest struct {
	ID                *string    `json:"id" maxLength:"64" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	UserID            *string    `json:"userId" maxLength:"64" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	Code              *string    `json:"code" maxLength:"64" doc:"currency code" example:"BTC"`
	Address           *string    `json:"address" maxLength:"256"`
	AddressTag        *string    `json:"addressTag" maxLength:"256"`
	Network           *string    `json:"network" maxLength:"64" example:"BTC"`
	StartDate         *rest.Time `json:"startDate"`
	EndDate           *rest.Time `json:"endDate" doc:"inclusive; a date includes the whole day"`
	IsActive          *bool      `json:"isActive" doc:"true: the status is not final"`
	StatusCode        *int       `json:"statusCode" doc:"the number of transactionStatus" example:"6"`
	ExternalID        *string    `json:"externalId" maxLength:"256"`
	AttemptIdentifier *string    `json:"attemptIdentifier" maxLength:"256"`
	TxID              *string    `json:"txId" maxLength:"256"`
	FullName          *string    `json:"fullName" maxLength:"256" doc:"part of the name, not case-sensitive" example:"ada"`
	rest.Sorted
}

func (g Group) queue(
	ctx context.Context, who rest.Caller, in queueRequest,
) (out rest.Reply[[]cryptoWithdrawalQueueEntry], err error) {
	q := transaction.QueueQuery{ID: in.ID, UserID: in.UserID, Address: in.Address, AddressTag: in.AddressTag,
		ExternalID: in.ExternalID, Attempt: in.AttemptIdentifier, TxID: in.TxID, Active: in.IsActive, Name: in.FullName,
		Assets: g.Service.Assets(in.Code, in.Network)}
	if in.StatusCode != nil {
		q.Status = new(g.Numbers.QueueStatus(*in.StatusCode))
	}
	if q.From, q.To, err = rest.Span("startDate", in.StartDate, in.EndDate); err != nil {
		return out, err
	}
	return rest.List(ctx, who, in.Paging, q, g.Service.Queue, g.showQueued(g.contacts(who)))
}

type decideRequest struct {
	WithdrawalID string  `json:"withdrawalId" maxLength:"64" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	Status       int     `json:"status" doc:"4: success, 5: waitingApproval" example:"4"`
	CurrencyCode *string `json:"currencyCode" maxLength:"64" doc:"required if status is 4" example:"BTC"`
	Reason       *string `json:"reason" maxLength:"500" doc:"for the audit log" example:"Sent by hand"`
}

// Validate requires one of the two statuses, and the currency for a success.
func (in decideRequest) Validate() error {
	success := in.Status == int(transaction.QueueSuccess)
	var ps fault.Problems
	ps.Require(success || in.Status == int(transaction.QueueWaiting), "status", "must be 4 or 5")
	ps.Require(!success || strings.TrimSpace(rest.Or(in.CurrencyCode, "")) != "", "currencyCode", "is required")
	return fault.All(ps)
}

// marked returns the decision that a withdrawal was sent.
func marked(_ context.Context, in any) (is rest.Governed, err error) {
	if in.(*decideRequest).Status == int(transaction.QueueSuccess) {
		is.Kind = "DECISION"
	}
	return is, nil
}

// queueOwner returns the user of a queue entry.
func (g Group) queueOwner(ctx context.Context, _ rest.Caller, in decideRequest) (rest.Named, error) {
	q, err := g.Service.Store.Queued(ctx, in.WithdrawalID)
	return rest.Named{Users: []string{q.UserID}, Matter: rest.Standing}, err
}

func (g Group) decide(
	ctx context.Context, who rest.Caller, in decideRequest,
) (out rest.Data[cryptoWithdrawalQueueEntry], err error) {
	// In one transaction: an answer that cannot be read changes nothing.
	err = g.Service.Changes.Commit.InTx(ctx, func(ctx context.Context) error {
		q, err := g.Service.UpdateQueue(ctx, who.By(), transaction.QueueUpdate{ID: in.WithdrawalID,
			To: transaction.QueueStatus(in.Status), CurrencyCode: strings.TrimSpace(rest.Or(in.CurrencyCode, "")),
			Reason: strings.TrimSpace(rest.Or(in.Reason, ""))})
		if err != nil {
			return err
		}
		all, err := g.Service.Queue(ctx, transaction.QueueQuery{ID: &q.ID}, page.Query[transaction.Place]{})
		for _, e := range all.Records {
			out.Data = g.showQueued(g.contacts(who))(e)
		}
		return err
	})
	return out, err
}

// process is an event of a transaction on its network.
type process struct {
	TransactionID       string `json:"transactionId" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	NetworkCode         string `json:"networkCode" example:"BTC"`
	TxID                string `json:"txId" example:"4a5e1e4b"`
	ExplorerURL         string `json:"explorerUrl" doc:"can be empty" example:"https://mempool.space/tx/4a5e1e4b"`
	InternalTransaction bool   `json:"internalTransaction" doc:"whether the transfer stays within the system"`
	// The fields below are an extension (D-INT-17).
	CurrencyCode string         `json:"currencyCode" example:"BTC"`
	Amount       *amount.Amount `json:"amount" doc:"of the withdrawal, without the fee; else null" example:"0.25"`
}

func (process) SchemaName() string { return "Process" }

type processRequest struct {
	UserID    string     `json:"userId" maxLength:"64" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	Code      *string    `json:"code" maxLength:"64" doc:"currency code" example:"BTC"`
	StartDate *rest.Time `json:"startDate"`
	EndDate   *rest.Time `json:"endDate" doc:"inclusive; a date includes the whole day"`
	Type      *string    `json:"type" maxLength:"64" doc:"type of the user" example:"bireysel"`
	rest.Paging
}

func (g Group) processes(ctx context.Context, who rest.Caller,
	in processRequest) (out rest.Reply[[]process], err error) {
	q := transaction.ProcessQuery{UserID: in.UserID, Assets: g.Service.Assets(in.Code, nil)}
	if q.From, q.To, err = rest.Span("startDate", in.StartDate, in.EndDate); err != nil {
		return out, err
	}
	read := func(ctx context.Context, q transaction.ProcessQuery,
		p page.Query[transaction.Place]) (page.Of[transaction.Process], error) {
		return g.Service.Processes(ctx, q, in.Type, p)
	}
	return rest.List(ctx, who, in.Paging, q, read, func(p transaction.Process) process {
		pair, _ := g.Service.Currencies.Catalog().Pair(p.Asset)
		out := process{p.TransactionID, pair.Network.Code, p.TxID, g.explorer(pair.Network.Code, p.TxID), p.Internal,
			pair.Currency.Code, nil}
		if p.Amount.Sign() != 0 {
			out.Amount = &p.Amount
		}
		return out
	})
}
