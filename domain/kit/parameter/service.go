package parameter

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
)

// Seed adds missing parameters. It is called at every start, so that a release can add a parameter. The caller ensures
// that one node at a time calls it, in one transaction.
func Seed(ctx context.Context, s Store) error {
	all, err := s.List(ctx, Query{})
	if err != nil {
		return err
	}
	for _, k := range kinds {
		first := k.first()
		if slices.ContainsFunc(all, func(p Parameter) bool { return p.Code == first.Code }) {
			continue
		}
		if _, err := s.Add(ctx, first); err != nil {
			return err
		}
	}
	return nil
}

// SeedExplorers sets the initial links of the parameter EXPLORER. A parameter that was ever changed is left alone, even
// if it is empty. The caller ensures that one node at a time calls it, in one transaction.
func SeedExplorers(ctx context.Context, s Store, links Links) error {
	p, err := one(ctx, s, Query{Code: &Explorer.Code})
	if err != nil {
		return err
	}
	if !p.UpdatedAt.Equal(p.CreatedAt) || !bytes.Equal(p.JSON, Explorer.first().JSON) {
		return nil
	}
	object, err := json.Marshal(links)
	if err == nil {
		_, err = s.Save(ctx, p, object)
	}
	return err
}

// Service applies changes made by administrators.
type Service struct {
	Store   Store
	Changes admin.Changes
}

// Update replaces the object of a parameter as a whole and returns the parameter. read is the version that the
// administrator has seen, which must be the current one; nil: any. RECORD_NOT_FOUND; INVALID_STATE for one that is not
// editable or has changed; INVALID_FIELD json.
func (s *Service) Update(ctx context.Context, by audit.By, id int64, object json.RawMessage,
	read *time.Time) (p Parameter, err error) {
	var compact bytes.Buffer
	if json.Compact(&compact, object) != nil {
		return p, check("", object)
	}
	object = compact.Bytes()
	if err := check("", object); err != nil {
		return p, err
	}
	err = s.Changes.Do(ctx, by, "PARAMETER_UPDATE", func(ctx context.Context) (admin.Done, error) {
		if p, err = one(ctx, s.Store, Query{ID: &id}); err != nil {
			return admin.Done{}, err
		}
		if err := check(p.Code, object); err != nil {
			return admin.Done{}, err
		}
		switch {
		case !p.Editable:
			return admin.Done{}, fault.New(fault.InvalidState, "the parameter is not editable")
		case read != nil && !read.Equal(p.UpdatedAt):
			return admin.Done{}, Changed()
		case bytes.Equal(p.JSON, object):
			return admin.Done{}, nil
		}
		detail := difference(p.JSON, object)
		p, err = s.Store.Save(ctx, p, object)
		return admin.Done{Target: p.Code, Detail: detail}, err
	})
	return p, err
}

// Changed returns the refusal of a change based on an earlier version.
func Changed() error {
	return fault.New(fault.InvalidState, "the parameter has changed since it was read")
}

func one(ctx context.Context, s Store, q Query) (Parameter, error) {
	all, err := s.List(ctx, q)
	if err == nil && len(all) == 0 {
		err = fault.New(fault.RecordNotFound, "no such parameter")
	}
	if err != nil {
		return Parameter{}, err
	}
	return all[0], nil
}

// difference lists the changed members with their old and new values, for investigators.
func difference(before, after json.RawMessage) string {
	var from, to map[string]any
	if json.Unmarshal(before, &from) != nil || json.Unmarshal(after, &to) != nil {
		return ""
	}
	changed := map[string][2]any{}
	for key, old := range from {
		if next, kept := to[key]; !kept || !reflect.DeepEqual(old, next) {
			changed[key] = [2]any{conceal(key, old), conceal(key, next)}
		}
	}
	for key, next := range to {
		if _, known := from[key]; !known {
			changed[key] = [2]any{nil, conceal(key, next)}
		}
	}
	told, _ := json.Marshal(changed) // it was read from JSON
	if len(told) > maxDetailBytes {
		sum := sha256.Sum256(told)
		return fmt.Sprintf("%d bytes of old and new, SHA-256 %x", len(told), sum)
	}
	return string(told)
}

// maxDetailBytes limits the description of a change in an audit row.
const maxDetailBytes = 16 << 10

var secretName = regexp.MustCompile(`(?i)secret|passw|token|credential|private|api_?key`)

// conceal hides values whose name marks them as secret, at any depth.
func conceal(key string, value any) any {
	if secretName.MatchString(key) && value != nil {
		return "(hidden)"
	}
	switch v := value.(type) {
	case map[string]any:
		for k := range v {
			v[k] = conceal(k, v[k])
		}
	case []any:
		for i := range v {
			v[i] = conceal("", v[i])
		}
	}
	return value
}
