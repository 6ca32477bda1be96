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

// Service changes books. Besides the errors listed at each method, all methods return UNAVAILABLE if the database
// fails.
type Service struct {
	Store      Store
	Changes    admin.Changes // without a topic
	Currencies *currency.Cache
	Rules      address.Rules
	Tags       address.Tags
	// Waiting is how long a new address must wait before its first withdrawal; 0: no wait. The time starts when the
	// address was entered, so that it also applies to an intruder who changes an entry.
	Waiting time.Duration
}

// Record is an entry as shown to clients.
type Record struct {
	Entry
	CurrencyCode, NetworkCode string
	UsableFrom                time.Time // zero if no waiting time is configured
}

func (s *Service) record(e Entry) (Record, error) {
	c, n, err := s.Currencies.FindByIDs(e.CurrencyID, e.NetworkID)
	if err != nil {
		return Record{}, fmt.Errorf("withdrawal address %d: %w", e.ID, err)
	}
	r := Record{Entry: e, CurrencyCode: c.Code, NetworkCode: n.Code}
	if s.Waiting > 0 {
		r.UsableFrom = e.AddressAt.Add(s.Waiting)
	}
	return r, nil
}

// List returns the caller's book, oldest first. An entry stays listed if its currency or network is no longer enabled
// for withdrawals.
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

// New is the input of Service.Add.
type New struct{ CurrencyCode, NetworkCode, Address, AddressTag, Name string }

// Add adds an address. Errors, in this order (D-WAD-03): INVALID_FIELD with every invalid field,
// WD_NETWORK_ASSET_MISMATCH, CHAR_LIMIT_EXCEEDED, RECORD_ALREADY_EXIST, RECORD_LIMIT_REACHED.
func (s *Service) Add(ctx context.Context, who audit.By, in New) (Record, error) {
	name, addr, tag := NewName(in.Name), strings.TrimSpace(in.Address), strings.TrimSpace(in.AddressTag)
	cur, net, err := s.Currencies.Catalog().Withdrawal(strings.TrimSpace(in.CurrencyCode),
		strings.TrimSpace(in.NetworkCode))
	wrong := form(&addr, &name)
	if err == nil {
		wrong = join(wrong, s.tagged(net.Code, tag))
	}
	if err := join(err, wrong); err != nil {
		return Record{}, err
	}
	if err := s.fits(net.Code, addr); err != nil {
		return Record{}, err
	}
	if err := name.fits(); err != nil {
		return Record{}, err
	}
	// The database stores times in milliseconds.
	now := s.Changes.Now().Truncate(time.Millisecond)
	e := Entry{Name: name.String(), Address: addr, AddressTag: tag, CurrencyID: cur.ID, NetworkID: net.ID, CreatedAt: now,
		AddressAt: now}
	err = s.Changes.Do(ctx, who, "WITHDRAWAL_ADDRESS_ADD", func(ctx context.Context) (admin.Done, error) {
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
		return done(who, e.ID, cur.Code+" on "+net.Code+": "+e.destination()), err
	})
	if err != nil {
		return Record{}, err
	}
	return s.record(e)
}

// Change is the input of Service.Change; nil: unchanged.
type Change struct {
	ID                        int64
	Address, AddressTag, Name *string
}

// Change changes the address or name of an entry, on its pair of currency and network. Whether the pair is still
// enabled is checked at a withdrawal. The current values may be sent again. Errors, in this order (D-WAD-02, 03):
// INVALID_FIELD, RECORD_NOT_FOUND, WD_NETWORK_ASSET_MISMATCH, CHAR_LIMIT_EXCEEDED, RECORD_ALREADY_EXIST.
func (s *Service) Change(ctx context.Context, who audit.By, in Change) (Record, error) {
	var addr, tag *string
	var name *Name
	if in.Address != nil {
		addr = new(strings.TrimSpace(*in.Address))
	}
	if in.AddressTag != nil {
		tag = new(strings.TrimSpace(*in.AddressTag))
	}
	if in.Name != nil {
		name = new(NewName(*in.Name))
	}
	if addr == nil && tag == nil && name == nil {
		return Record{}, fault.All([]fault.Problem{{Field: "address", Message: "is required without name"},
			{Field: "name", Message: "is required without address"}})
	}
	if err := form(addr, name); err != nil {
		return Record{}, err
	}
	now := s.Changes.Now().Truncate(time.Millisecond)
	var changed Record
	err := s.Changes.Do(ctx, who, "WITHDRAWAL_ADDRESS_UPDATE", func(ctx context.Context) (admin.Done, error) {
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
			next.Address = *addr
		}
		if tag != nil {
			if err := s.tagged(changed.NetworkCode, *tag); err != nil {
				return admin.Done{}, err
			}
			next.AddressTag = *tag
		}
		if !old.To(next.Address, next.AddressTag) {
			next.AddressAt = now
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

// Remove deletes an entry; RECORD_NOT_FOUND if the caller's book does not have it.
func (s *Service) Remove(ctx context.Context, who audit.By, id int64) error {
	return s.Changes.Do(ctx, who, "WITHDRAWAL_ADDRESS_REMOVE", func(ctx context.Context) (admin.Done, error) {
		book, err := s.Store.Hold(ctx, who.UserID)
		if err != nil {
			return admin.Done{}, err
		}
		e, err := book.Find(id)
		if err != nil {
			return admin.Done{}, err
		}
		return done(who, id, e.destination()), s.Store.Remove(ctx, who.UserID, id)
	})
}

func (s *Service) fits(network, addr string) error {
	if !s.Rules.Fits(network, addr) {
		return refuse(fault.WDNetworkAssetMismatch, "address", "is not an address of the network "+network)
	}
	return nil
}

// tagged returns INVALID_FIELD for a tag that the network does not have.
func (s *Service) tagged(network, tag string) error {
	if why := s.Tags.Problem(network, tag); why != "" {
		return fault.Invalid("addressTag", "%s", why)
	}
	return nil
}

// destination is the address with its tag, for the audit.
func (e Entry) destination() string {
	if e.AddressTag == "" {
		return e.Address
	}
	return e.Address + " tag " + e.AddressTag
}

// done records the address for investigations. A name is the user's own text and is left out.
func done(who audit.By, id int64, detail string) admin.Done {
	return admin.Done{Target: strconv.FormatInt(id, 10), UserID: who.UserID, Detail: detail}
}

func difference(old, next Entry) string {
	var parts []string
	if old.destination() != next.destination() {
		parts = append(parts, old.destination()+" -> "+next.destination())
	}
	if old.Name != next.Name {
		parts = append(parts, "name changed")
	}
	return strings.Join(parts, ", ")
}

// form checks the values that need no lookup; nil: not sent.
func form(addr *string, name *Name) error {
	var ps fault.Problems
	if addr != nil {
		formed, why := address.WellFormed(*addr), address.Lost(*addr)
		ps.Require(formed, "address", "must be 10 to 128 letters, digits and : _ . -")
		ps.Require(!formed || why == "", "address", "%s", why)
	}
	if name != nil {
		why := name.problem()
		ps.Require(why == "", "name", "%s", why)
	}
	return fault.All(ps)
}

// join merges two refusals, so that the response names every invalid field.
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
