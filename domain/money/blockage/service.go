package blockage

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/page"
	"castellan/domain/money/currency"
	"castellan/domain/money/ledger"
)

// Query selects blockages that are not deleted; a nil field does not filter.
type Query struct {
	UserID     *string
	CurrencyID *int64
	TypeIDs    []int64 // any of these
	Status     *Status
}

// Store reads blockages. Every method joins the transaction that its context carries. It is safe for concurrent use.
type Store interface {
	// Get reads a blockage that is not deleted. RECORD_NOT_FOUND.
	Get(ctx context.Context, id int64) (Blockage, error)
	// List returns a page of the matching blockages, newest first.
	List(ctx context.Context, q Query, p page.Query[Place]) (page.Of[Blockage], error)
	// Closures returns the active closures of a user, one for each currency.
	Closures(ctx context.Context, userID string) ([]Blockage, error)
}

// Service changes blockages for administrators. All fields are required.
type Service struct {
	Store      Store
	Ledger     *ledger.Ledger
	Users      user.Store
	Currencies *currency.Cache
	Now        func() time.Time
}

// Currency finds a currency by its code, in any case.
func (s *Service) Currency(code string) (id int64, known bool) {
	p, known := s.Currencies.Catalog().Info(&code, nil)
	return p.CurrencyID, known
}

// Request is the input of Service.Insert.
type Request struct {
	UserID, CurrencyCode string
	TypeID               int64
	SourceID             int64
	Amount               amount.Amount
	Description          string
	DescriptionJSON      json.RawMessage
}

// Insert blocks an amount, which may exceed the balance (D-BLK-03). A user without an account of the currency gets one.
//
// Errors: INVALID_FIELD amount; RECORD_NOT_FOUND for a user or a currency.
func (s *Service) Insert(ctx context.Context, by audit.By, r Request) (b Blockage, err error) {
	if r.Amount.Sign() <= 0 {
		return b, ledger.ErrAmount
	}
	if _, err := s.Users.Get(ctx, r.UserID); err != nil {
		return b, err
	}
	currencyID, known := s.Currency(r.CurrencyCode)
	if !known {
		return b, fault.New(fault.RecordNotFound, "the currency does not exist on any network")
	}
	pairs := s.pairs(currencyID)
	accounts, err := s.accounts(ctx, r.UserID, r.Amount, pairs)
	if err != nil {
		return b, err
	}
	_, err = s.Ledger.Decide(ctx, by, accounts, func(_ context.Context, has []ledger.Balance) (m ledger.Movement,
		err error) {
		now := s.Now().Truncate(time.Millisecond)
		b = Blockage{ID: newID(now), UserID: r.UserID, CurrencyID: currencyID, TypeID: r.TypeID,
			SourceID: r.SourceID, Amount: r.Amount, Status: Active, Description: r.Description,
			DescriptionJSON: r.DescriptionJSON, CreatedAt: now, CurrencyCode: pairs[0].Currency.Code}
		if m.Take, err = b.lock(now, r.Amount, has); err != nil {
			return m, err
		}
		m.With = []commit.Write{Add{b}, s.auditWrite(by, now, "BLOCKAGE_ADD", b, "")}
		return m, nil
	})
	return b, err
}

// Update sets the status and the comment of a blockage. A released blockage locks nothing; when it is activated again,
// it locks its amount again. A blockage that an administrator activates again is no longer a closure, so reopening the
// account does not release it. Setting the status it already has changes nothing; nil leaves the comment unchanged.
//
// Errors: RECORD_NOT_FOUND.
func (s *Service) Update(ctx context.Context, by audit.By, id int64, to Status, comment *string) (Blockage, error) {
	return s.move(ctx, by, id, func(now time.Time, b *Blockage) (action, detail string) {
		if b.Status == to && (comment == nil || b.Comment == *comment) {
			return "", ""
		}
		detail = fmt.Sprintf("%s -> %s", b.Status, to)
		if comment != nil && *comment != b.Comment {
			b.Comment = *comment
			detail += ", comment changed"
		}
		if b.Status == Released && to == Active {
			b.Closure = false
		}
		b.Status, b.UpdatedAt = to, now
		return "BLOCKAGE_UPDATE", detail
	})
}

// Delete hides a blockage and releases its amount (D-BLK-04). RECORD_NOT_FOUND, also for a deleted blockage.
func (s *Service) Delete(ctx context.Context, by audit.By, id int64) (Blockage, error) {
	return s.move(ctx, by, id, func(now time.Time, b *Blockage) (action, detail string) {
		detail = string(b.Status)
		b.Status, b.DeletedAt = Released, now
		return "BLOCKAGE_DELETE", detail
	})
}

// move changes a blockage, and its holds if the status changes. change returns no action if nothing is to be done.
func (s *Service) move(ctx context.Context, by audit.By, id int64,
	change func(now time.Time, b *Blockage) (action, detail string)) (b Blockage, err error) {
	first, err := s.Store.Get(ctx, id)
	if err != nil {
		return b, err
	}
	accounts, err := s.accounts(ctx, first.UserID, first.Amount, s.pairs(first.CurrencyID))
	if err != nil {
		return b, err
	}
	_, err = s.Ledger.Decide(ctx, by, accounts, func(ctx context.Context, has []ledger.Balance) (m ledger.Movement,
		err error) {
		if b, err = s.Store.Get(ctx, id); err != nil {
			return m, err
		}
		was, now := b.Status, s.Now().Truncate(time.Millisecond)
		action, detail := change(now, &b)
		switch {
		case action == "":
			return m, nil
		case was == Active && b.Status == Released:
			m.End, err = s.unlock(ctx, b)
		case was == Released && b.Status == Active:
			m.Take, err = b.lock(now, b.Amount, has)
		}
		m.With = []commit.Write{Save{b}, s.auditWrite(by, now, action, b, detail)}
		return m, err
	})
	return b, err
}

func (s *Service) auditWrite(by audit.By, now time.Time, action string, b Blockage, detail string) commit.Write {
	if detail != "" {
		detail = ", " + detail
	}
	return by.Did(audit.Record{At: now, Action: action, UserID: b.UserID, Target: b.key(),
		Detail: b.Amount.String() + " " + b.CurrencyCode + ", type " + strconv.FormatInt(b.TypeID, 10) + detail})
}
