package resource

import (
	"context"
	"fmt"
	"time"

	"castellan/domain/account/user"
)

// Sync writes the required rows of the registry: the built-in roles, the types of the table's methods and a resource
// for each of its lines. These resources are active and of the right type. Existing rows keep their name, their
// position and their properties. Rows that are not in the table stay, because another version of the program may serve
// them. The caller runs it in one transaction, at every start; when nothing is missing it only reads.
func Sync(ctx context.Context, s Store, t Table, now time.Time) error {
	if err := s.Lock(ctx); err != nil {
		return err
	}
	by := Stamp{CreatedBy: System, CreatedAt: now, UpdatedBy: System, UpdatedAt: now}
	if err := syncRoles(ctx, s, now); err != nil {
		return fmt.Errorf("sync the roles: %w", err)
	}
	types, err := syncTypes(ctx, s, t, by)
	if err != nil {
		return fmt.Errorf("sync the resource types: %w", err)
	}
	if err := syncResources(ctx, s, t, types, by); err != nil {
		return fmt.Errorf("sync the resources: %w", err)
	}
	return nil
}

func syncRoles(ctx context.Context, s Store, now time.Time) error {
	have, err := s.Roles(ctx)
	if err != nil {
		return err
	}
	for _, r := range []Role{{Code: user.RoleAdmin, Name: "Administrator"}, {Code: user.RoleUser, Name: "User"}} {
		if _, known := first(have, func(x Role) bool { return x.Code == r.Code }); known {
			continue
		}
		r.CreatedAt = now
		if _, err := s.AddRole(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// syncTypes returns the id of each method's type.
func syncTypes(ctx context.Context, s Store, t Table, by Stamp) (map[string]int64, error) {
	have, err := s.Types(ctx)
	if err != nil {
		return nil, err
	}
	ids := map[string]int64{}
	for _, method := range t.types() {
		old, known := first(have, func(x Type) bool { return x.Context == API && x.Code == method })
		switch {
		case !known:
			old = Type{Name: method, Code: method, Context: API, Status: Active, Stamp: by}
			if old.ID, err = s.AddType(ctx, old); err != nil {
				return nil, err
			}
		case old.Status != Active:
			old.Status, old.UpdatedBy, old.UpdatedAt = Active, by.UpdatedBy, by.UpdatedAt
			if err := s.SaveType(ctx, old); err != nil {
				return nil, err
			}
		}
		ids[method] = old.ID
	}
	return ids, nil
}

func syncResources(ctx context.Context, s Store, t Table, types map[string]int64, by Stamp) error {
	all, err := s.Resources(ctx)
	if err != nil {
		return err
	}
	have := map[string]Resource{}
	for _, r := range all {
		if r.Context == API {
			have[r.Code] = r
		}
	}
	for _, e := range t {
		old, known := have[e.Code()]
		switch {
		case !known:
			r := Resource{Code: e.Code(), Name: e.Name, Status: Active, TypeID: types[e.Method], Context: API,
				Stamp: by}
			if r.Name == "" {
				r.Name = r.Code
			}
			if _, err := s.AddResource(ctx, r); err != nil {
				return err
			}
		case old.Status != Active || old.TypeID != types[e.Method]:
			old.Status, old.TypeID, old.UpdatedBy, old.UpdatedAt = Active, types[e.Method], by.UpdatedBy, by.UpdatedAt
			if err := s.SaveResource(ctx, old); err != nil {
				return err
			}
		}
	}
	return nil
}
