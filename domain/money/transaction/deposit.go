package transaction

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/integration"
	"castellan/domain/money/ledger"
	"castellan/domain/money/policy"
)

// Report is a deposit reported by a wallet (D-INT-05).
type Report struct {
	ExternalID            string
	UserID, ToAddress     string // one of them may be ""
	CurrencyCode, Network string
	Amount                amount.Amount
	TxID, FromAddress     string
	SenderInfo            string // a JSON object; "" if unknown
	Final                 bool   // the deposit is to be credited
}

// fixed holds the fields that a later report of a deposit must not change.
type fixed struct {
	UserID                       string
	Asset                        int64
	Amount                       string
	TxID, ToAddress, FromAddress string
}

// maxSenderInfo is the maximum size of the information about a sender, in bytes.
const maxSenderInfo = 8 << 10

// Refusals of a report.
var (
	errNoAddress = fault.New(fault.RecordNotFound, "no user has this address for this currency and network")
	errReceived  = fault.New(fault.RecordAlreadyExist,
		"the transaction to this address was reported under another externalId")
	errDeciding = fault.New(fault.InvalidState, "the treasury is deciding on the deposit")
	errDecided  = fault.New(fault.InvalidState, "the deposit is already credited")
	errSenderIs = &fault.Error{Code: fault.InvalidState, Field: "senderInfo",
		Message: "the deposit does not need information about its sender",
		Fields:  []fault.Problem{{Field: "senderInfo", Message: "is already known"}}}
	errNoDeposit = fault.New(fault.RecordNotFound, "there is no such deposit")
)

// check validates a report alone and converts SenderInfo to its canonical form. INVALID_FIELD.
func (r *Report) check() error {
	var ps fault.Problems
	ps.Require(len(r.ExternalID) <= integration.MaxExternalID, "externalId", "must be at most 128 bytes")
	ps.Require(strings.TrimSpace(r.UserID+r.ToAddress) != "", "userId", "is required without toAddress")
	ps.Require(r.Amount.Sign() > 0, "amount", "must be greater than 0")
	info, ok := canonical(r.SenderInfo)
	ps.Require(ok, "senderInfo", "must be an object that is not empty")
	ps.Require(len(info) <= maxSenderInfo, "senderInfo", "must be at most 8192 bytes")
	r.SenderInfo = info
	return fault.All(ps)
}

// canonical returns a JSON object with its members in order and without spaces; false if the text is not an object or
// an empty one. "" is returned unchanged.
func canonical(text string) (string, bool) {
	if text == "" {
		return "", true
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var members map[string]any
	if err := d.Decode(&members); err != nil || len(members) == 0 {
		return "", false
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(members)
	return strings.TrimSpace(out.String()), err == nil
}

// Report records a deposit, once for each external id, or updates the deposit reported under it (D-INT-05). A new
// deposit waits for its sender, waits for the treasury if its sender is known, or is credited. A later report with the
// same fields supplies the sender or credits the deposit, which happens once. An amount above the maximum of its pair,
// or above what the account can hold, waits until the treasury credits it, and so does one that the money policy holds.
// A report that changes nothing returns the deposit. Deposit, transfer, external id, audit row, event and the message
// to the user commit together.
//
// Errors: INVALID_FIELD; RECORD_NOT_FOUND for a currency, network, user or address; INVALID_STATE for other fields than
// before, and for a deposit that the treasury is deciding on or has decided on; RECORD_ALREADY_EXIST if the transfer on
// the blockchain was reported under another external id; ErrFull of the ledger.
func (s *Service) Report(ctx context.Context, by audit.By, r Report) (Deposit, error) {
	d, err := s.report(ctx, by, r)
	if errors.Is(err, ledger.ErrTooLarge) && r.Final { // the account cannot hold it: the treasury decides
		r.Final = false
		return s.report(ctx, by, r)
	}
	return d, err
}

func (s *Service) report(ctx context.Context, by audit.By, r Report) (d Deposit, err error) {
	d, u, err := s.reported(ctx, &r)
	if err != nil {
		return d, err
	}
	d.Initiator, r.SenderInfo = initiatorOf(by), d.SenderInfo
	asked := d
	claim := integration.Claim{Kind: integration.Deposits, ExternalID: r.ExternalID, RecordID: d.ID, At: d.At,
		Digest: integration.Digest(fixed{d.UserID, d.Asset, d.Amount.String(), d.TxID, d.ToAddress, d.FromAddress})}
	d, repeated, err := integration.Once(ctx, s.Claims, claim, s.Deposit, func(ctx context.Context) (Deposit, error) {
		made, err := s.receive(ctx, by, u, d, claim)
		if fault.CodeOf(err) == fault.RecordAlreadyExist && !commit.Inside(ctx) {
			// The claim of paid may be that of another output, which is no conflict.
			return s.receive(ctx, by, u, d, claim)
		}
		return made, err
	})
	switch {
	case repeated && err == nil:
		return s.advance(ctx, by, u, d, r)
	case errors.Is(err, integration.ErrOtherBody):
		if same, ok := s.respelled(ctx, r, asked); ok {
			return s.report(ctx, by, same)
		}
	case fault.CodeOf(err) == fault.RecordAlreadyExist:
		return d, errReceived // a concurrent report of the transfer on the blockchain
	}
	return d, err
}

// reported returns the deposit that a report would make, with SenderInfo in its canonical form. A deposit above the
// maximum of its pair is not final: the treasury decides on it.
func (s *Service) reported(ctx context.Context, r *Report) (d Deposit, u user.User, err error) {
	if err := r.check(); err != nil {
		return d, u, err
	}
	// Even an inactive pair: an incoming deposit is never rejected for that.
	pair, ok := s.Currencies.Catalog().Info(&r.CurrencyCode, &r.Network)
	if !ok {
		return d, u, fault.Invalid("currencyCode", "is not a currency of this network")
	}
	if !r.Amount.Fits(pair.Decimals()) {
		return d, u, ledger.ErrPrecision
	}
	r.Final = r.Final && !pair.OverMax(r.Amount)
	now := s.Now().Truncate(time.Millisecond)
	d = Deposit{ID: id.New(now), Asset: pair.ID, Amount: r.Amount, Status: WaitingSender, TxID: r.TxID,
		SenderInfo: r.SenderInfo, ExternalID: r.ExternalID, FromAddress: r.FromAddress, At: now}
	switch {
	case r.Final:
		d.Status = Finalized
	case r.SenderInfo != "":
		d.Status = WaitingTreasury
	}
	u, d.ToAddress, err = s.receiver(ctx, *r, pair.ID)
	d.UserID = u.ID
	return d, u, err
}

// receiver returns the user of a report, and the address. If the report names the user, the address may be unknown to
// this service; it is never that of another account.
func (s *Service) receiver(ctx context.Context, r Report, asset int64) (u user.User, address string, err error) {
	var holder ledger.Account
	if r.ToAddress != "" {
		holder, err = s.Holder(ctx, r.ToAddress)
		switch known := err == nil; {
		case !known && fault.CodeOf(err) != fault.RecordNotFound:
			return u, "", err
		case r.UserID == "" && (!known || holder.Asset != asset):
			return u, "", errNoAddress
		case r.UserID != "" && known && holder != account(r.UserID, asset):
			return u, "", fault.Invalid("toAddress", "is the address of another account")
		}
	}
	userID, address := r.UserID, r.ToAddress
	if userID == "" {
		userID = holder.Owner
	}
	if address == "" {
		address = Address(account(userID, asset))
	}
	if u, err = s.Users.Get(ctx, userID); fault.CodeOf(err) == fault.RecordNotFound {
		err = fault.New(fault.RecordNotFound, "there is no such user")
	}
	return u, address, err
}

// Holder returns the user's account of an address: an address of this system (Address), or one assigned to an account.
// RECORD_NOT_FOUND.
func (s *Service) Holder(ctx context.Context, address string) (ledger.Account, error) {
	address = strings.TrimSpace(address)
	if text, is := strings.CutPrefix(address, addressPrefix); is {
		number, owner, _ := strings.Cut(text, ":")
		asset, err := strconv.ParseInt(number, 10, 64)
		if a := account(owner, asset); err == nil && owner != "" && Address(a) == address {
			return a, nil
		}
		return ledger.Account{}, errNoAddress
	}
	a, err := s.Store.Holder(ctx, address)
	if err == nil && a.Kind != ledger.User {
		err = errNoAddress
	}
	return a, err
}

// Deposit reads a deposit. RECORD_NOT_FOUND.
func (s *Service) Deposit(ctx context.Context, depositID string) (Deposit, error) {
	all, err := s.Store.Deposits(ctx, depositID)
	if err == nil && len(all) == 0 {
		err = errNoDeposit
	}
	if err != nil {
		return Deposit{}, err
	}
	return all[0], nil
}

// receive records a deposit, with its claims, and credits it unless rules hold it.
func (s *Service) receive(ctx context.Context, by audit.By, u user.User, asked Deposit, c integration.Claim) (d Deposit,
	err error) {
	if err := asked.readable(); err != nil {
		return asked, err
	}
	var accounts []ledger.Account
	if asked.Status > 0 {
		accounts = []ledger.Account{account(asked.UserID, asked.Asset)}
	}
	var held ruling
	_, err = s.Judge.decide(ctx, s.Ledger, by, accounts, func(ctx context.Context,
		_ []ledger.Balance) (m ledger.Movement, err error) {
		d = asked
		paid, err := s.paid(ctx, d, c.Digest)
		if err != nil {
			return m, err
		}
		if err := s.free(ctx, d); err != nil {
			return m, err
		}
		if d.Status > 0 {
			if d, held, err = s.judgedCredit(ctx, u, d, d.At); err != nil {
				return m, err
			}
		}
		m = Receive(d)
		d = m.With[0].(AddDeposit).Deposit
		m.With = append(append(append(m.With, d.claimed(c.Digest)...), paid...), held.gates...)
		m.With = append(m.With, integration.Add{Claim: c},
			by.Did(audit.Record{At: d.At, Action: "DEPOSIT_RECEIVE", UserID: d.UserID, Target: d.ID,
				Detail: fmt.Sprintf("%s: %s %s", d.Status, d.Amount, s.code(d.Asset))}))
		if d.Status > 0 {
			m.With = append(m.With, s.decided(d, d.At))
		}
		m.With = append(m.With, held.row(by, d, d.At)...)
		d.Facts = ""                     // they are not read
		if d.Status != WaitingTreasury { // which needs no action of the user
			told, err := s.decisionNotices(ctx, d, by)
			if err != nil {
				return m, err
			}
			m.With = append(m.With, told...)
		}
		return m, nil
	})
	if err == nil {
		s.Judge.hit(held.Verdict)
	}
	return d, err
}

// advanced returns a deposit after a later report, with the audit name of the change; "" if nothing changed.
func (d Deposit) advanced(r Report) (next Deposit, action string, err error) {
	informs := r.SenderInfo != "" && r.SenderInfo != d.SenderInfo
	switch {
	case d.Status > 0 && (informs || r.Final && d.Status != Finalized):
		return d, "", errDecided
	case informs && d.Status != WaitingSender:
		return d, "", errSenderIs
	case d.Status > 0 || !informs && !r.Final:
		return d, "", nil
	}
	next, action = d, "DEPOSIT_SENDER"
	if informs {
		next.SenderInfo, next.Status = r.SenderInfo, WaitingTreasury
	}
	if r.Final {
		next.Status, action = Finalized, "DEPOSIT_FINALIZE"
	}
	return next, action, nil
}

// advance applies a later report to a deposit, and retries after concurrent changes.
func (s *Service) advance(ctx context.Context, by audit.By, u user.User, d Deposit, r Report) (Deposit, error) {
	var accounts []ledger.Account
	if r.Final {
		accounts = []ledger.Account{account(d.UserID, d.Asset)}
	}
	var hit policy.Verdict
	_, err := s.Judge.decide(ctx, s.Ledger, by, accounts, func(ctx context.Context,
		_ []ledger.Balance) (m ledger.Movement, err error) {
		hit = policy.Verdict{}
		was, err := s.Deposit(ctx, d.ID)
		if err != nil {
			return m, err
		}
		now, final := s.Now().Truncate(time.Millisecond), r
		var held ruling
		if r.Final && was.Status < 0 {
			asked := was
			asked.Initiator = cmp.Or(was.Initiator, initiatorOf(by))
			if held, err = s.credited(ctx, u, asked, now); err != nil {
				return m, err
			}
			final.Final = held.Passes()
		}
		next, action, err := was.advanced(final)
		if d = was; err != nil {
			return m, err
		}
		with, err := s.firstHeld(ctx, by, was, held, now)
		if err != nil || action == "" && len(with) == 0 {
			return m, err
		}
		if err := s.unclaimed(ctx, []Deposit{was}); err == errNotWaiting {
			return m, errDeciding
		} else if err != nil {
			return m, err
		}
		if next.Status > 0 {
			m.Transfers = []ledger.Transfer{next.credit(now)}
			next.TransferID = m.Transfers[0].ID
			if with, err = s.decisionNotices(ctx, next, by); err != nil {
				return m, err
			}
			with = append(with, s.decided(next, now))
		}
		if d, hit = next, held.Verdict; r.Final {
			next.Facts = stored(held.facts)
		}
		m.With = append(append(with, held.gates...), SetDeposit{next})
		if action != "" {
			m.With = append(m.With, by.Did(audit.Record{At: now, Action: action, UserID: next.UserID, Target: next.ID,
				Detail: fmt.Sprintf("%s to %s: %s %s", was.Status, next.Status, next.Amount, s.code(next.Asset))}))
		}
		return m, nil
	})
	if err == nil { // a report that changes nothing may be repeated often
		s.Judge.hit(hit)
	}
	return d, err
}
