package dropdown

import (
	"context"
	"strconv"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/code"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/legible"
)

// MaxOrderNo is the highest order number of an option.
const MaxOrderNo = 1_000_000_000

// Check validates an option. INVALID_FIELD with every invalid field.
func (o Option) Check() error {
	ps := fault.Problems(append(code.Check("dropdownCode", o.Group), code.Check("code", o.Code)...))
	legible.CheckName(&ps, "nameEn", o.English)
	legible.CheckName(&ps, "nameTr", o.Turkish)
	legible.CheckName(&ps, "nameAr", o.Arabic)
	return fault.All(ps)
}

// Service applies changes made by administrators. All fields are required.
type Service struct {
	Store   Store
	Changes admin.Changes // without a topic: no node caches options
}

// Add adds an option and returns it. Without a place it is the last of its group. INVALID_FIELD as in Check;
// RECORD_ALREADY_EXIST if its group has the code.
func (s *Service) Add(ctx context.Context, by audit.By, o Option, place *int64) (Option, error) {
	if err := o.Check(); err != nil {
		return o, err
	}
	err := s.Changes.Do(ctx, by, "DROPDOWN_OPTION_ADD", func(ctx context.Context) (done admin.Done, err error) {
		if place != nil {
			o.OrderNo = *place
		} else if o.OrderNo, err = s.next(ctx, o.Group); err != nil {
			return done, err
		}
		o.ID, err = s.Store.Add(ctx, o)
		return admin.Done{Target: number(o.ID), Detail: admin.Values(o)}, err
	})
	return o, err
}

// next returns the order number after the last one of a group.
func (s *Service) next(ctx context.Context, group string) (int64, error) {
	all, err := s.Store.List(ctx, Query{Group: &group, Inactive: true})
	if err != nil || len(all) == 0 {
		return 1, err
	}
	return min(all[len(all)-1].OrderNo+1, MaxOrderNo), nil
}

// Change edits an option; its group and its code cannot change. If nothing differs afterwards, nothing is written.
// RECORD_NOT_FOUND; INVALID_FIELD as in Check, for the resulting option.
func (s *Service) Change(ctx context.Context, by audit.By, id int64, edit func(*Option)) (next Option, err error) {
	err = s.Changes.Do(ctx, by, "DROPDOWN_OPTION_UPDATE", func(ctx context.Context) (done admin.Done, err error) {
		err = s.Store.Change(ctx, id, func(before Option) (Option, error) {
			next = before
			edit(&next)
			if next != before {
				done = admin.Done{Target: number(id), Detail: next.Group + " " + next.Code + ": " +
					admin.Difference(before, next)}
			}
			return next, fault.Since(before.Check(), next.Check(), map[string]bool{"nameEn": next.English != before.English,
				"nameTr": next.Turkish != before.Turkish, "nameAr": next.Arabic != before.Arabic})
		})
		return done, err
	})
	return next, err
}

func number(id int64) string { return strconv.FormatInt(id, 10) }
