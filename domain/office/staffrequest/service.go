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

// form is a pointer to a request of one kind.
type form[T any] interface {
	*T
	request() *Request
	Check() error
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

// ChangeDeploy edits a request and returns it. INVALID_FIELD, RECORD_NOT_FOUND.
func (s *Service) ChangeDeploy(ctx context.Context, by audit.By, id int64, edit func(*Deploy)) (Deploy, error) {
	valid := Deploy{Request{Status: Pending, Type: "x"}, "x", "x", "x", 1}
	return change(ctx, s, s.Deploys.Change, by, "DEPLOY_REQUEST_UPDATE", id, valid, edit)
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

// ChangeVPN is like ChangeDeploy.
func (s *Service) ChangeVPN(ctx context.Context, by audit.By, id int64, edit func(*VPN)) (VPN, error) {
	valid := VPN{Request: Request{Status: Pending, Type: "X"}, UserName: "x"}
	return change(ctx, s, s.VPNs.Change, by, "VPN_REQUEST_UPDATE", id, valid, edit)
}

// change edits a request of one kind. The edit is first judged on a valid request, so that an invalid edit is reported
// before an unknown id (D-GEN-19). A call of an interface's Change here would keep the linker from leaving out any
// method of that name, which costs 0.4 MB; so save is a function.
func change[T any, P form[T]](ctx context.Context, s *Service,
	save func(context.Context, int64, func(T) (T, error)) error, by audit.By, action string, id int64, valid T,
	edit func(P)) (next T, err error) {
	edit(&valid)
	if err := P(&valid).Check(); err != nil {
		return next, err
	}
	err = s.Changes.Do(ctx, by, action, func(ctx context.Context) (admin.Done, error) {
		var old T
		was, is := P(&old).request(), P(&next).request()
		err := save(ctx, id, func(r T) (T, error) {
			old, next = r, r
			edit(&next)
			is.DeciderID, is.UpdatedAt = by.UserID, s.now()
			return next, P(&next).Check()
		})
		before := *was
		*was = *is // the rest of both is compared
		return describeChange(before, *is, admin.Differ(old, next)), err
	})
	return next, err
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
