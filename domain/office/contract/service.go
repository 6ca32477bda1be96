package contract

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/richtext"
)

// Service applies changes made by administrators, and returns contracts for display.
type Service struct {
	Store   Store
	Changes admin.Changes // without a topic: no node caches contracts; its Lock is that of Store
	HTML    *richtext.Policy
}

// Details lists the details of a contract in order; none if the contract does not exist.
func (s *Service) Details(ctx context.Context, contractID int64) ([]Detail, error) {
	all, err := s.Store.Details(ctx, contractID)
	for i := range all {
		all[i] = s.shown(all[i])
	}
	return all, err
}

func (s *Service) shown(d Detail) Detail {
	d.Content = s.HTML.Shown(d.Content, d.Policy)
	return d
}

func (s *Service) written(d *Detail, content string) {
	d.Content, d.Policy = s.HTML.Clean(content), s.HTML.ID
}

// AddDetails adds details to a contract and returns them. INVALID_FIELD for an empty list or more than MaxDetails;
// RECORD_NOT_FOUND for the contract; INVALID_STATE if it is replaced.
func (s *Service) AddDetails(ctx context.Context, by audit.By, contractID int64, drafts []Draft) ([]Detail, error) {
	if err := bounded("details", len(drafts)); err != nil {
		return nil, err
	}
	added := make([]Detail, len(drafts))
	for i, d := range drafts {
		added[i] = Detail{ContractID: contractID, Title: d.Title}
		s.written(&added[i], d.Content)
	}
	err := s.Changes.Do(ctx, by, "CONTRACT_DETAIL_ADD", func(ctx context.Context) (done admin.Done, err error) {
		if err := s.editable(ctx, contractID); err != nil {
			return done, err
		}
		present, err := s.Store.Details(ctx, contractID)
		if err != nil {
			return done, err
		}
		last := int64(0)
		for _, d := range present {
			last = max(last, d.OrderNo)
		}
		ids := make([]int64, len(drafts))
		for i := range added {
			d := &added[i]
			d.OrderNo = min(last+1, MaxOrderNo)
			if n := drafts[i].OrderNo; n != nil {
				d.OrderNo = *n
			}
			last = max(last, d.OrderNo)
			if d.ID, err = s.Store.AddDetail(ctx, *d); err != nil {
				return done, err
			}
			ids[i] = d.ID
		}
		return admin.Done{Target: few(ids), Detail: fmt.Sprintf("contract %d", contractID)}, nil
	})
	return added, err
}

// ChangeDetails changes details and returns them in the order of the changes. INVALID_FIELD for an empty list, more
// than MaxDetails and a duplicate id; RECORD_NOT_FOUND for a detail and for the new contract of a detail; INVALID_STATE
// for a detail of a replaced contract and if the new contract is replaced.
func (s *Service) ChangeDetails(ctx context.Context, by audit.By, changes []Change) ([]Detail, error) {
	ids, err := changedIDs(changes)
	if err != nil {
		return nil, err
	}
	var changed []Detail
	err = s.Changes.Do(ctx, by, "CONTRACT_DETAIL_UPDATE", func(ctx context.Context) (done admin.Done, err error) {
		before, err := s.details(ctx, ids)
		if err != nil {
			return done, err
		}
		touched := contractsOf(before)
		for _, c := range changes {
			if c.ContractID != nil {
				touched = append(touched, *c.ContractID)
			}
		}
		if err := s.editable(ctx, touched...); err != nil {
			return done, err
		}
		changed, done, err = s.save(ctx, before, ids, changes)
		return done, err
	})
	return changed, err
}

// changedIDs returns the ids of the changes, which must be distinct.
func changedIDs(changes []Change) ([]int64, error) {
	ids := make([]int64, len(changes))
	for i, c := range changes {
		ids[i] = c.ID
	}
	return ids, distinct("details", ".id", ids)
}

// save applies the changes to their details, saves these, and returns them for display.
func (s *Service) save(ctx context.Context, before map[int64]Detail, ids []int64,
	changes []Change) (changed []Detail, done admin.Done, err error) {
	var did []string
	for _, c := range changes {
		d := before[c.ID]
		did = append(did, s.apply(c, &d))
		if err := s.Store.SaveDetail(ctx, d); err != nil {
			return nil, done, err
		}
		changed = append(changed, s.shown(d))
	}
	return changed, admin.Done{Target: few(ids), Detail: few(did)}, nil
}

// apply applies the change and describes it.
func (s *Service) apply(c Change, d *Detail) string {
	before := *d
	admin.Set(&d.Title, c.Title)
	admin.Set(&d.OrderNo, c.OrderNo)
	admin.Set(&d.ContractID, c.ContractID)
	if c.Content != nil {
		s.written(d, *c.Content)
	}
	return strings.TrimSpace(number(d.ID) + " " + admin.Difference(before, *d))
}

// RemoveDetails deletes details. INVALID_FIELD for an empty list, more than MaxDetails and a duplicate id;
// RECORD_NOT_FOUND, and then none is deleted; INVALID_STATE for a detail of a replaced contract.
func (s *Service) RemoveDetails(ctx context.Context, by audit.By, ids []int64) error {
	if err := distinct("ids", "", ids); err != nil {
		return err
	}
	return s.Changes.Do(ctx, by, "CONTRACT_DETAIL_DELETE", func(ctx context.Context) (done admin.Done, err error) {
		before, err := s.details(ctx, ids)
		if err == nil {
			err = s.editable(ctx, contractsOf(before)...)
		}
		if err != nil {
			return done, err
		}
		return admin.Done{Target: few(ids)}, s.Store.RemoveDetails(ctx, ids)
	})
}

// Reorder sets the order numbers of details of a contract and returns all of its details in their new order.
// INVALID_FIELD for an empty list, more than MaxDetails, a duplicate id and one of another contract; RECORD_NOT_FOUND
// for the contract and for a detail; INVALID_STATE if the contract is replaced.
func (s *Service) Reorder(ctx context.Context, by audit.By, contractID int64, places []Change) ([]Detail, error) {
	ids, err := changedIDs(places)
	if err != nil {
		return nil, err
	}
	var after []Detail
	err = s.Changes.Do(ctx, by, "CONTRACT_DETAIL_REORDER", func(ctx context.Context) (done admin.Done, err error) {
		if err := s.editable(ctx, contractID); err != nil {
			return done, err
		}
		before, err := s.details(ctx, ids)
		if err != nil {
			return done, err
		}
		for i, id := range ids {
			if before[id].ContractID != contractID {
				return done, fault.Invalid(fmt.Sprintf("details[%d].id", i), "is a detail of another contract")
			}
		}
		if _, done, err = s.save(ctx, before, ids, places); err == nil {
			after, err = s.Details(ctx, contractID)
		}
		return done, err
	})
	return after, err
}

// contractsOf lists the contracts of details; one with several details is listed several times.
func contractsOf(details map[int64]Detail) (ids []int64) {
	for _, d := range details {
		ids = append(ids, d.ContractID)
	}
	return ids
}

// details returns the details of the ids, which must all exist. RECORD_NOT_FOUND.
func (s *Service) details(ctx context.Context, ids []int64) (map[int64]Detail, error) {
	found, err := s.Store.DetailsOf(ctx, ids)
	if err != nil {
		return nil, err
	}
	byID := make(map[int64]Detail, len(found))
	for _, d := range found {
		byID[d.ID] = d
	}
	if len(byID) < len(ids) {
		return nil, fault.New(fault.RecordNotFound, "no such contract detail")
	}
	return byID, nil
}

// bounded rejects an empty list and one that is too long.
func bounded(field string, n int) error {
	switch {
	case n == 0:
		return fault.Invalid(field, "must not be empty")
	case n > MaxDetails:
		return fault.Invalid(field, "has too many elements, at most %d", MaxDetails)
	}
	return nil
}

// distinct is bounded for a list without duplicate details; at is the path of its elements.
func distinct(field, at string, ids []int64) error {
	for i, id := range ids {
		if slices.Contains(ids[:i], id) {
			return fault.Invalid(fmt.Sprintf("%s[%d]%s", field, i, at), "is given more than once")
		}
	}
	return bounded(field, len(ids))
}

// shownInAudit is how many details an audit row lists.
const shownInAudit = 20

// few formats a list for the audit row, with limited length.
func few[T any](list []T) string {
	var b strings.Builder
	for i, x := range list {
		if i == shownInAudit {
			fmt.Fprintf(&b, " … %d in all, SHA-256 %x", len(list), sha256.Sum256(fmt.Append(nil, list)))
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, x)
	}
	return b.String()
}
