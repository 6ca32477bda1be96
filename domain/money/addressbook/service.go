package addressbook

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/money/addressbook/address"
	"castellan/domain/money/currency"
)

// The audit names of what is done with a book.
const (
	ActionAdd    = "WITHDRAWAL_ADDRESS_ADD"
	ActionUpdate = "WITHDRAWAL_ADDRESS_UPDATE"
	ActionRemove = "WITHDRAWAL_ADDRESS_REMOVE"
)

// Service carries out the operations on books. Besides the errors named at each
// method all return UNAVAILABLE when the database fails.
type Service struct {
	Store      Store
	Changes    admin.Changes // of no topic
	Currencies *currency.Live
	Rules      address.Rules
	// Waiting is how long an address waits before it may be withdrawn to; 0: not
	// at all. It counts from when the address was entered, so that an intruder
	// who changes an entry waits as well.
	Waiting time.Duration
}

// Record is an entry as it is shown.
type Record struct {
	Entry
	CurrencyCode, NetworkCode string
	UsableFrom                time.Time // zero where no waiting time is configured
}

func (s *Service) record(e Entry) (Record, error) {
	c, n, err := s.Currencies.Named(e.CurrencyID, e.NetworkID)
	if err != nil {
		return Record{}, fmt.Errorf("withdrawal address %d: %w", e.ID, err)
	}
	r := Record{Entry: e, CurrencyCode: c.Code, NetworkCode: n.Code}
	if s.Waiting > 0 {
		r.UsableFrom = e.AddressAt.Add(s.Waiting)
	}
	return r, nil
}

// List returns the caller's book, oldest first. An entry stays listed when its
// currency or network is no longer enabled for withdrawals.
func (s *Service) List(ctx context.Context, who audit.By) ([]Record, error) {
	book, err := s.Store.Book(ctx, who.UserID)
	if err != nil {
		return nil, err
	}
	out := make([]Record, len(book))
	for i, e := range book {
		if out[i], err = s.record(e); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// New is what is asked of Add.
type New struct{ CurrencyCode, NetworkCode, Address, Name string }

// Add adds an address. Errors, in this order (D-WAD-03): INVALID_FIELD with
// every faulty field, WD_NETWORK_ASSET_MISMATCH, CHAR_LIMIT_EXCEEDED,
// RECORD_ALREADY_EXIST, RECORD_LIMIT_REACHED.
func (s *Service) Add(ctx context.Context, who audit.By, in New) (Record, error) {
	name, addr := NewName(in.Name), strings.TrimSpace(in.Address)
	cur, net, err := s.Currencies.Catalog().Withdrawal(strings.TrimSpace(in.CurrencyCode),
		strings.TrimSpace(in.NetworkCode))
	if err := join(err, form(&addr, &name)); err != nil {
		return Record{}, err
	}
	if err := s.fits(net.Code, addr); err != nil {
		return Record{}, err
	}
	if err := name.fits(); err != nil {
		return Record{}, err
	}
	// What the database keeps of an instant is its millisecond.
	now := s.Changes.Now().Truncate(time.Millisecond)
	e := Entry{Name: name.String(), Address: addr, CurrencyID: cur.ID, NetworkID: net.ID, CreatedAt: now,
		AddressAt: now}
	err = s.Changes.Do(ctx, who, ActionAdd, func(ctx context.Context) (admin.Done, error) {
		book, err := s.Store.Hold(ctx, who.UserID)
		if err == nil {
			err = book.Free(e)
		}
		if err == nil {
			err = book.Room()
		}
		if err == nil {
			e.ID, err = s.Store.Insert(ctx, who.UserID, e)
		}
		return done(who, e.ID, cur.Code+" on "+net.Code+": "+e.Address), err
	})
	if err != nil {
		return Record{}, err
	}
	return s.record(e)
}

// Change is what is asked of Service.Change; nil: as it is.
type Change struct {
	ID            int64
	Address, Name *string
}

// Change gives an entry another address or name, on its pair of currency and
// network; whether that is still enabled is asked when something is withdrawn.
// What the entry has already may be given again. Errors, in this order
// (D-WAD-02, 03): INVALID_FIELD, RECORD_NOT_FOUND, WD_NETWORK_ASSET_MISMATCH,
// CHAR_LIMIT_EXCEEDED, RECORD_ALREADY_EXIST.
func (s *Service) Change(ctx context.Context, who audit.By, in Change) (Record, error) {
	var addr *string
	var name *Name
	if in.Address != nil {
		addr = new(strings.TrimSpace(*in.Address))
	}
	if in.Name != nil {
		name = new(NewName(*in.Name))
	}
	if addr == nil && name == nil {
		return Record{}, fault.All([]fault.Problem{{Field: "address", Message: "is required without name"},
			{Field: "name", Message: "is required without address"}})
	}
	if err := form(addr, name); err != nil {
		return Record{}, err
	}
	now := s.Changes.Now().Truncate(time.Millisecond)
	var changed Record
	err := s.Changes.Do(ctx, who, ActionUpdate, func(ctx context.Context) (admin.Done, error) {
		book, err := s.Store.Hold(ctx, who.UserID)
		if err != nil {
			return admin.Done{}, err
		}
		old, err := book.Find(in.ID)
		if err != nil {
			return admin.Done{}, err
		}
		if changed, err = s.record(old); err != nil {
			return admin.Done{}, err
		}
		next := old
		if addr != nil {
			if err := s.fits(changed.NetworkCode, *addr); err != nil {
				return admin.Done{}, err
			}
			if next.Address = *addr; next.Key() != old.Key() {
				next.AddressAt = now
			}
		}
		if name != nil {
			if err := name.fits(); err != nil {
				return admin.Done{}, err
			}
			next.Name = name.String()
		}
		if next == old {
			return admin.Done{}, nil
		}
		if err := book.Free(next); err != nil {
			return admin.Done{}, err
		}
		if changed, err = s.record(next); err != nil {
			return admin.Done{}, err
		}
		return done(who, next.ID, difference(old, next)), s.Store.Replace(ctx, who.UserID, next)
	})
	return changed, err
}

// Remove removes an entry; RECORD_NOT_FOUND when the caller's book has no such.
func (s *Service) Remove(ctx context.Context, who audit.By, id int64) error {
	return s.Changes.Do(ctx, who, ActionRemove, func(ctx context.Context) (admin.Done, error) {
		book, err := s.Store.Hold(ctx, who.UserID)
		if err != nil {
			return admin.Done{}, err
		}
		e, err := book.Find(id)
		if err != nil {
			return admin.Done{}, err
		}
		return done(who, id, e.Address), s.Store.Remove(ctx, who.UserID, id)
	})
}

func (s *Service) fits(network, addr string) error {
	if !s.Rules.Fits(network, addr) {
		return refuse(fault.WDNetworkAssetMismatch, "address", "is no address of the network "+network)
	}
	return nil
}

// done says which address it was, since that is what an investigation asks for.
// A name is the user's own text and stays out.
func done(who audit.By, id int64, detail string) admin.Done {
	return admin.Done{Target: strconv.FormatInt(id, 10), UserID: who.UserID, Detail: detail}
}

func difference(old, next Entry) string {
	var parts []string
	if old.Address != next.Address {
		parts = append(parts, old.Address+" -> "+next.Address)
	}
	if old.Name != next.Name {
		parts = append(parts, "name changed")
	}
	return strings.Join(parts, ", ")
}

// form judges what needs no looking up; nil: not sent.
func form(addr *string, name *Name) error {
	var ps []fault.Problem
	if addr != nil && !address.WellFormed(*addr) {
		ps = append(ps, fault.Problem{Field: "address", Message: "must be 10 to 128 letters, digits and : _ . -"})
	}
	if name != nil {
		if p := name.problem(); p != "" {
			ps = append(ps, fault.Problem{Field: "name", Message: p})
		}
	}
	return fault.All(ps)
}

// join makes one refusal of two, so that an answer names every faulty field.
func join(a, b error) error {
	x, isA := a.(*fault.Error)
	y, isB := b.(*fault.Error)
	switch {
	case isA && isB:
		return fault.All(append(x.Fields[:len(x.Fields):len(x.Fields)], y.Fields...))
	case a != nil:
		return a
	}
	return b
}
