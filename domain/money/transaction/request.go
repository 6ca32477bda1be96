package transaction

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/integration"
	"castellan/domain/kit/parameter"
	"castellan/domain/money/addressbook"
	"castellan/domain/money/addressbook/address"
	"castellan/domain/money/currency"
	"castellan/domain/money/ledger"
	"castellan/domain/money/limit"
	"castellan/domain/money/policy"
)

// Withdrawals accepts withdrawals and moves them through the queue (D-INT-04). Waiting and Judge are optional.
// It is safe for concurrent use.
type Withdrawals struct {
	Ledger     *ledger.Ledger
	Store      Store
	Users      user.Store
	Currencies *currency.Cache
	Parameters *parameter.Cache
	Limits     *limit.Service
	Books      addressbook.Store
	Rules      address.Rules
	Tags       address.Tags
	// Waiting is how long an address of a book must wait before its first use. If it is set, only addresses of the
	// user's book are allowed.
	Waiting time.Duration
	Claims  integration.Store
	Now     func() time.Time
	// Statements signs orders for the wallet, as Issuer (token.Issuer).
	Statements interface {
		SignStatement(typ string, claims any) (string, error)
	}
	Issuer string
	// Judge judges withdrawals by the rules of the money policy; nil: none is judged.
	Judge *Judge
	// Notices tells owners of holds by rules. It is required with a Judge.
	Notices challenge.Notices
	// Altered is called for each claim of a withdrawal whose rows differ from its order; nil: not.
	Altered func(id string)
}

// Outgoing is a withdrawal with its entry of the queue.
type Outgoing struct {
	Withdrawal Withdrawal
	Queued     Queued
}

// Fee returns the cost of the withdrawal: booked, or else held.
func (o Outgoing) Fee() amount.Amount {
	if o.Withdrawal.TransferID == "" && o.Queued.Fee != nil {
		return *o.Queued.Fee
	}
	return o.Withdrawal.Fee
}

// Entry is an entry of the queue in a list, with its withdrawal and its user. The user's fields are "" if the account
// does not exist or lacks them. Service.Queue sets Progress, and Approvers, the operators whose approvals count.
type Entry struct {
	Outgoing
	FullName, Email, Phone string
	Progress               []Progress
	Approvers              []string
}

func (e Entry) Mark() Place { return e.Queued.Mark() }

// WithdrawalRequest requests a withdrawal, to Address or to the entry AddressID of the user's address book.
type WithdrawalRequest struct {
	ExternalID                        string
	UserID, CurrencyCode, NetworkCode string
	Amount                            amount.Amount
	Address, AddressTag               string
	AddressID                         int64 // 0: use Address
}

// detail describes a request for the audit row.
func (r WithdrawalRequest) detail(pair currency.Listed, fee amount.Amount) string {
	return r.Amount.String() + " " + pair.Currency.Code + " on " + pair.Network.Code + ", fee " + fee.String()
}

// SetDesk counts a request of a user. Requests of one user are decided one after the other: each is fenced by the
// version of the desk.
type SetDesk struct {
	UserID  string
	Version int64
	At      time.Time
}

func (SetDesk) Table() string { return "withdrawal_desk" }

func (w SetDesk) Fence() (key string, version int64) { return w.UserID, w.Version }

// Get reads a withdrawal of the queue. RECORD_NOT_FOUND.
func (s *Withdrawals) Get(ctx context.Context, id string) (o Outgoing, err error) {
	if o.Queued, err = s.Store.Queued(ctx, id); err != nil {
		return o, err
	}
	o.Withdrawal, err = s.Store.Withdrawal(ctx, id)
	return o, err
}

// Request puts a withdrawal into the queue, once for each external id. Withdrawal, queue entry, hold, external id,
// audit row and event commit together. The fee is the current fee of the currency; it is held in addition to the amount
// and does not change later.
//
// Errors, the first that applies: INVALID_FIELD; INVALID_STATE for an external id of another request; RECORD_NOT_FOUND
// for the user; ACCOUNT_NOT_ACTIVE, WITHDRAWAL_PROHIBITED, AML_RISKY, PAIR_DISABLED, BELOW_MINIMUM, LIMIT_EXCEEDED,
// ADDRESS_NOT_ALLOWED, INSUFFICIENT_BALANCE; then POLICY_DENIED and OWNER_REQUIRED of the money policy. If the policy
// asks for an approval or a wait, the withdrawal is stored in QueueWaiting, and the wallet learns of it at its release.
func (s *Withdrawals) Request(ctx context.Context, by audit.By, r WithdrawalRequest) (Outgoing, error) {
	if r.Amount.Sign() <= 0 {
		return Outgoing{}, ledger.ErrAmount
	}
	c := integration.Claim{Kind: integration.Withdrawals, ExternalID: r.ExternalID, Digest: integration.Digest(r)}
	o, _, err := integration.Once(ctx, s.Claims, c, s.Get, func(ctx context.Context) (Outgoing, error) {
		return s.enqueue(ctx, by, r, terms{By: initiatorOf(by)}, func(recordID string, at time.Time) commit.Write {
			c.RecordID, c.At = recordID, at
			return integration.Add{Claim: c}
		})
	})
	if !commit.Inside(ctx) {
		err = s.Denied(ctx, by, err)
	}
	return o, err
}

// pair makes the checks that need no account, and returns the currency and network of a request.
func (s *Withdrawals) pair(ctx context.Context, r WithdrawalRequest) (currency.Listed, error) {
	pair, known := s.Currencies.Catalog().Info(&r.CurrencyCode, &r.NetworkCode)
	switch {
	case !known:
		return pair, fault.Invalid("currencyCode", "is not a currency of this network")
	case !r.Amount.Fits(pair.Decimals()):
		return pair, ledger.ErrPrecision
	}
	if why := s.Tags.Problem(pair.Network.Code, r.AddressTag); why != "" {
		return pair, fault.Invalid("addressTag", "%s", why)
	}
	_, err := s.owner(ctx, r.UserID)
	return pair, err
}

// terms are who asks for a withdrawal, and what the owner has approved: the fee, and the destination address. Both are
// zero if the owner was not asked.
type terms struct {
	By      Initiator
	Fee     *amount.Amount
	To, Tag string
	Methods string // with which the owner approved
	// Resistant says that one of these methods resists phishing. Begins says that the owner is about to be asked.
	Resistant, Begins bool
	Device            func(context.Context) (policy.Device, error) // of the owner; nil: not known
}

// enqueue checks a request and puts it into the queue. claim returns the write that binds the external id to the new
// withdrawal.
func (s *Withdrawals) enqueue(ctx context.Context, by audit.By, r WithdrawalRequest, approved terms,
	claim func(recordID string, at time.Time) commit.Write) (o Outgoing, err error) {
	pair, err := s.pair(ctx, r)
	if err != nil {
		return o, err
	}
	var asks ruling
	plan := func(ctx context.Context, has []ledger.Balance) (m ledger.Movement, err error) {
		desk, err := s.Store.Desk(ctx, r.UserID)
		if err != nil {
			return m, err
		}
		fee, err := feeOf(s.Parameters, Queued{Fee: approved.Fee}, pair)
		if err != nil {
			return m, err
		}
		u, to, tag, err := s.judge(ctx, r, pair, fee, has[0])
		if changed := err == nil && (to != approved.To || tag != approved.Tag) || errors.Is(err, errTag); changed &&
			approved.To != "" { // the entry of the address book
			err = errAddress
		}
		if err != nil {
			return m, err
		}
		now := s.Now().UTC().Truncate(time.Millisecond)
		if asks, err = s.asked(ctx, u, r, approved, pair, to, tag, now); err != nil {
			return m, err
		}
		w := Withdrawal{ID: id.New(now), UserID: r.UserID, Asset: pair.ID, Amount: r.Amount, ToAddress: to, At: now,
			Initiator: approved.By, OwnerMethods: approved.Methods, OwnerResistant: approved.Resistant,
			Destination: asks.facts.Destination.Key, Device: asks.facts.Device, Facts: stored(asks.facts)}
		q := Queued{UserID: r.UserID, Asset: pair.ID, Status: QueueReady, Address: to, AddressTag: tag,
			ExternalID: r.ExternalID, Fee: &fee}
		if !asks.Passes() {
			q.Status, q.Held = QueueWaiting, heldBy(asks.Verdict, now, now)
		}
		w.OrderDigest = s.order(Outgoing{w, q}).Digest()
		if m, err = Enqueue(w, q, fee); err != nil {
			return m, err
		}
		o = Outgoing{m.With[0].(AddWithdrawal).Withdrawal, m.With[1].(AddQueued).Queued}
		m.With = append(append(m.With, watched(u), SetDesk{r.UserID, desk, now}, claim(o.Queued.ID, now),
			by.Did(audit.Record{At: now, Action: "WITHDRAWAL_REQUEST", UserID: w.UserID, Target: w.ID,
				Detail: r.detail(pair, fee)})), asks.gates...)
		if o.Queued.Status == QueueReady {
			m.With = append(m.With, s.event(integration.WithdrawalQueued, o, now))
		} else {
			m.With = append(m.With, SetHeld{o.Queued}, by.Did(audit.Record{At: now, Action: "MONEY_HOLD", UserID: w.UserID,
				Target: w.ID, Detail: o.Queued.Held.detail()}))
			m.With = append(m.With, s.told(by, u, Queued{}, o)...)
		}
		o.Withdrawal.Facts, o.Withdrawal.Version, o.Queued.Version = "", 1, 1
		return m, nil
	}
	if _, err := s.Judge.decide(ctx, s.Ledger, by, []ledger.Account{account(r.UserID, pair.ID)}, plan); err != nil {
		return Outgoing{}, err
	}
	s.Judge.hit(asks.Verdict)
	return o, nil
}

// judge checks a request in the documented order, and returns the account and the destination.
func (s *Withdrawals) judge(ctx context.Context, r WithdrawalRequest, pair currency.Listed, fee amount.Amount,
	has ledger.Balance) (u user.User, to, tag string, err error) {
	if u, err = s.Users.Get(ctx, r.UserID); err != nil {
		return u, "", "", err
	}
	if _, err := s.barred(u); err != nil {
		return u, "", "", err
	}
	minimum := parameter.Minimum.In(s.Parameters.Set())[pair.Currency.Code]
	switch {
	case !pair.Active || !pair.Withdraw || !pair.Currency.Active || !pair.Currency.Withdraw || !pair.Network.Active:
		return u, "", "", fault.New(fault.PairDisabled, "withdrawals of the currency are disabled on this network")
	case r.Amount.Cmp(minimum) < 0:
		return u, "", "", fault.New(fault.BelowMinimum, "the smallest withdrawal is %s %s", minimum, pair.Currency.Code)
	}
	if err := s.Limits.Check(ctx, u, pair.ID, r.Amount); err != nil {
		return u, "", "", err
	}
	if to, tag, err = s.address(ctx, r, pair); err != nil {
		return u, "", "", err
	}
	total, err := r.Amount.Add(fee)
	if err != nil || has.Available().Cmp(total) < 0 {
		return u, "", "", fault.New(fault.InsufficientBalance, "the available balance does not cover the amount and the fee")
	}
	return u, to, tag, nil
}

var errAddress = fault.New(fault.AddressNotAllowed, "the address is not allowed for this withdrawal")

// errTag refuses a tag beside an entry of the address book that has another one.
var errTag = fault.Invalid("addressTag", "must be the tag of the entry of the address book")

// address returns the address and the tag of a request. An address of the book must be an entry of the user, on the
// same currency and network, that has waited long enough with its tag; any address must be valid on its network.
func (s *Withdrawals) address(ctx context.Context, r WithdrawalRequest, pair currency.Listed) (to, tag string,
	err error) {
	to, tag = strings.TrimSpace(r.Address), r.AddressTag
	if r.AddressID != 0 || s.Waiting > 0 {
		book, err := s.Books.Book(ctx, r.UserID)
		if err != nil {
			return "", "", err
		}
		i := slices.IndexFunc(book, func(e addressbook.Entry) bool {
			fits := e.CurrencyID == pair.CurrencyID && e.NetworkID == pair.NetworkID
			return fits && (e.ID == r.AddressID || r.AddressID == 0 && e.To(to, tag))
		})
		switch {
		case i < 0 || book[i].AddressAt.Add(s.Waiting).After(s.Now()):
			return "", "", errAddress
		case tag != "" && tag != book[i].AddressTag:
			return "", "", errTag
		}
		to, tag = book[i].Address, book[i].AddressTag
	}
	if !address.WellFormed(to) || address.Lost(to) != "" || !s.Rules.Fits(pair.Network.Code, to) {
		return "", "", errAddress
	}
	return to, tag, nil
}

// event returns the event for the wallet about a withdrawal.
func (s *Withdrawals) event(t integration.Type, o Outgoing, now time.Time) integration.Publish {
	pair, _ := s.Currencies.Catalog().Pair(o.Queued.Asset)
	return integration.Publish{Event: integration.Event{ID: id.New(now), Type: t, UserID: o.Queued.UserID, At: now,
		Data: map[string]string{"withdrawalId": o.Queued.ID, "externalId": o.Queued.ExternalID,
			"currencyCode": pair.Currency.Code, "network": pair.Network.Code, "amount": o.Withdrawal.Amount.String(),
			"fee": o.Fee().String(), "address": o.Queued.Address, "addressTag": o.Queued.AddressTag,
			"status": cmp.Or(o.Queued.Status, QueueReady).String()}}}
}
