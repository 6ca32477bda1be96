package corporate

import (
	"context"
	"strconv"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/integration"
	"castellan/domain/kit/page"
)

// errNoApplication is the error for an unknown application id.
var errNoApplication = fault.New(fault.RecordNotFound, "there is no such application")

// Application reads an application. RECORD_NOT_FOUND.
func (s *Service) Application(ctx context.Context, n int64) (Application, error) {
	found, err := s.Store.Applications(ctx, ApplicationQuery{ID: &n}, page.Query[Place]{Limit: 1})
	if err == nil && len(found.Records) == 0 {
		err = errNoApplication
	}
	if err != nil {
		return Application{}, err
	}
	return found.Records[0], nil
}

// Report adds an application, once for its external id (D-INT-06). A repeat returns the stored application with its
// current status.
//
// Errors: INVALID_FIELD; INVALID_STATE for another application under the same external id.
func (s *Service) Report(ctx context.Context, by audit.By, a Application) (Application, error) {
	ps := texts(integration.MaxExternalID, "externalId", a.ExternalID)
	ps.Require(len(ps) > 0 || len(a.ExternalID) <= integration.MaxExternalID, "externalId", "must be at most 128 bytes")
	if err := fault.All(append(ps, a.problems()...)); err != nil {
		return a, err
	}
	claim := integration.Claim{Kind: integration.Applications, ExternalID: a.ExternalID,
		At:     s.Changes.Now().Truncate(time.Millisecond),
		Digest: integration.Digest([]string{a.CompanyName, a.TaxNumber, a.Status})}
	read := func(ctx context.Context, recordID string) (Application, error) {
		n, err := strconv.ParseInt(recordID, 10, 64)
		if err != nil {
			return a, err
		}
		return s.Application(ctx, n)
	}
	added, _, err := integration.Once(ctx, s.Claims, claim, read, func(ctx context.Context) (out Application, err error) {
		err = s.Changes.Do(ctx, by, ActionAdd, func(ctx context.Context) (admin.Done, error) {
			n, err := s.Store.AddApplication(ctx, a)
			if err != nil {
				return admin.Done{}, err
			}
			if out, err = s.Application(ctx, n); err != nil {
				return admin.Done{}, err
			}
			claim.RecordID = strconv.FormatInt(n, 10)
			return admin.Done{Target: claim.RecordID, Detail: a.Status,
				Writes: []commit.Write{integration.Add{Claim: claim}}}, nil
		})
		return out, err
	})
	return added, err
}

// SetStatus sets the status of an application. Setting the status it already has changes nothing. INVALID_FIELD,
// RECORD_NOT_FOUND.
func (s *Service) SetStatus(ctx context.Context, by audit.By, n int64, status string) (a Application, err error) {
	if err := fault.All(texts(maxMarkChars, "status", status)); err != nil {
		return a, err
	}
	err = s.Changes.Do(ctx, by, ActionStatus, func(ctx context.Context) (done admin.Done, err error) {
		was, err := s.Store.SetApplicationStatus(ctx, n, status)
		if err != nil {
			return done, err
		}
		a = was
		if a.Status = status; was.Status == status {
			return done, nil
		}
		return admin.Done{Target: strconv.FormatInt(n, 10), Detail: was.Status + " -> " + status}, nil
	})
	return a, err
}
