package staffrequest

import (
	"context"
	"strconv"
	"strings"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/page"
)

// Store stores the requests of one kind. Every method joins the transaction that its context carries. It is safe for
// concurrent use.
type Store[T, Q any] interface {
	// List lists the matching requests, newest first.
	List(ctx context.Context, q Q, p page.Query[Place]) (page.Of[T], error)
	// Add inserts a request and returns its id; the id of the argument is ignored.
	Add(ctx context.Context, r T) (int64, error)
	// Change calls f with a request and saves the result, as one step. RECORD_NOT_FOUND.
	Change(ctx context.Context, id int64, f func(T) (T, error)) error
}

// Deploys and VPNs are the stores.
type (
	Deploys = Store[Deploy, DeployQuery]
	VPNs    = Store[VPN, VPNQuery]
)

// DeployQuery selects requests; a nil field does not filter.
type DeployQuery struct {
	ID                                     *int64
	Status                                 *Status
	ServiceName, OriginalServiceName, Type *string
}

// VPNQuery selects requests; a nil field does not filter.
type VPNQuery struct {
	ID             *int64
	Status         *Status
	UserName, Type *string
}

// Service applies the operations of administrators.
type Service struct {
	Deploys Deploys
	VPNs    VPNs
	Users   user.Store
	Changes admin.Changes // without a topic
}

// AddDeploy adds a request of the caller and returns it. INVALID_FIELD.
func (s *Service) AddDeploy(ctx context.Context, by audit.By, d Deploy) (Deploy, error) {
	now := s.now()
	d.RequestorID, d.DeciderID, d.CreatedAt, d.UpdatedAt = by.UserID, "", now, now
	if err := d.Check(); err != nil {
		return d, err
	}
	err := s.Changes.Do(ctx, by, "DEPLOY_REQUEST_ADD", func(ctx context.Context) (_ admin.Done, err error) {
		d.ID, err = s.Deploys.Add(ctx, d)
		return describeChange(Request{}, d.Request, ""), err
	})
	return d, err
}

// ChangeDeploy changes a request and returns it. INVALID_FIELD, RECORD_NOT_FOUND.
func (s *Service) ChangeDeploy(ctx context.Context, by audit.By, id int64, c DeployChange) (d Deploy, err error) {
	if err := c.Check(); err != nil {
		return d, err
	}
	err = s.Changes.Do(ctx, by, "DEPLOY_REQUEST_UPDATE", func(ctx context.Context) (admin.Done, error) {
		var old Deploy
		err := s.Deploys.Change(ctx, id, func(r Deploy) (Deploy, error) {
			if d, err = c.Apply(r); err == nil {
				old, d.DeciderID, d.UpdatedAt = r, by.UserID, s.now()
			}
			return d, err
		})
		was := old.Request
		old.Request = d.Request
		return describeChange(was, d.Request, admin.Differ(old, d)), err
	})
	return d, err
}

// AddVPN adds a request of a user and returns it. INVALID_FIELD; RECORD_NOT_FOUND if the user does not exist
// (D-DVP-05).
func (s *Service) AddVPN(ctx context.Context, by audit.By, userID string, v VPN) (VPN, error) {
	now := s.now()
	v.Type = strings.ToUpper(v.Type)
	v.RequestorID, v.DeciderID, v.CreatedAt, v.UpdatedAt = userID, "", now, now
	if err := v.Check(); err != nil {
		return v, err
	}
	err := s.Changes.Do(ctx, by, "VPN_REQUEST_ADD", func(ctx context.Context) (admin.Done, error) {
		u, err := s.Users.Get(ctx, userID)
		if err != nil {
			return admin.Done{}, err
		}
		v.Name, v.Surname = u.Name, u.Surname
		v.ID, err = s.VPNs.Add(ctx, v)
		return describeChange(Request{}, v.Request, ""), err
	})
	return v, err
}

// ChangeVPN changes a request and returns it. INVALID_FIELD, RECORD_NOT_FOUND.
func (s *Service) ChangeVPN(ctx context.Context, by audit.By, id int64, c VPNChange) (v VPN, err error) {
	if err := c.Check(); err != nil {
		return v, err
	}
	err = s.Changes.Do(ctx, by, "VPN_REQUEST_UPDATE", func(ctx context.Context) (admin.Done, error) {
		var old VPN
		err := s.VPNs.Change(ctx, id, func(r VPN) (VPN, error) {
			if v, err = c.Apply(r); err == nil {
				old, v.DeciderID, v.UpdatedAt = r, by.UserID, s.now()
			}
			return v, err
		})
		was := old.Request
		old.Request = v.Request
		return describeChange(was, v.Request, admin.Differ(old, v)), err
	})
	return v, err
}

// now returns the time in the precision of the database, whole milliseconds.
func (s *Service) now() time.Time { return s.Changes.Now().Truncate(time.Millisecond) }

// describeChange describes the request, the requesting user and the change of the status, and names the other fields
// that changed: their texts are those of users.
func describeChange(old, r Request, fields string) admin.Done {
	detail := strings.TrimPrefix(string(old.Status)+" -> "+string(r.Status), " -> ")
	if old.Status != "" && old.Comment != r.Comment {
		fields += " Comment"
	}
	if fields = strings.TrimSpace(fields); fields != "" {
		detail += ", " + fields
	}
	return admin.Done{Target: strconv.FormatInt(r.ID, 10), UserID: r.RequestorID, Detail: detail}
}
