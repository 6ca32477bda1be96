package people_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/standing"
	"castellan/persistence/kit"
)

// REQ-KYC-12 to REQ-KYC-14, D-KYC-06.
func TestAMLControl(t *testing.T) {
	standingBoth(t, func(s standingSite) {
		ctx := t.Context()
		parameters := s.service.Ignored
		ignored := func() []string {
			t.Helper()
			all := storetest.Value(parameters.List(ctx, parameter.Query{Code: &parameter.AMLControl.Code}))(t)
			var i parameter.Ignored
			storetest.Must(t, json.Unmarshal(all[0].JSON, &i))
			slices.Sort(i.IgnoredUsers)
			return i.IgnoredUsers
		}
		s.Wants(standingRisky, "", 200, "[]")
		s.Wants(standingConfirm, `{"userId":"jane"}`, 200, `{"data":{"userId":"jane","fullName":"Jane Doe",`+
			`"email":"jane@example.com","amlStatus":"notRisky","createdAt":"2023-11-14T22:13:20.000Z"}}`)
		storetest.Equal(t, len(ignored()), 0)
		var names []string
		for i := range 9 {
			u := user.New(fmt.Sprintf("risky%d", i), time.UnixMilli(1_700_000_000_000))
			u.Phone, u.AMLStatus = fmt.Sprintf("+9053210000%02d", i), "highRisk"
			storetest.Must(t, s.DB.Commit(ctx, user.Add{User: u}))
			names = append(names, u.ID)
		}
		shape := func(name, status string) string {
			return `{"userId":"` + name + `","fullName":"","email":null,"amlStatus":"` + status +
				`","createdAt":"2023-11-14T22:13:20.000Z"}`
		}
		s.Wants(standingRisky+"?limit=1", "", 200, "["+shape("risky8", "highRisk")+"]")
		// An account in the parameter is confirmed.
		storetest.Must(t, s.DB.InTx(ctx, func(ctx context.Context) error {
			return parameter.AMLControl.Change(ctx, parameters, func(i parameter.Ignored) (parameter.Ignored, error) {
				i.IgnoredUsers = append(i.IgnoredUsers, "risky8", "jane")
				return i, nil
			})
		}))
		r, got := s.Send(standingRisky+"?limit=1&count=true", "")
		if got != "["+shape("risky7", "highRisk")+"]" || r.Header.Get("X-Total-Count") != "8" ||
			!strings.Contains(r.Header.Get("Link"), "cursor=") {
			t.Errorf("%s %v", got, r.Header)
		}
		// Three at once for each: each is noted once, and none is lost.
		var wg sync.WaitGroup
		for i := range 3 * len(names) {
			name := names[i%len(names)]
			wg.Go(func() { s.Wants(standingConfirm, `{"userId":"`+name+`"}`, 200, `{"data":`+shape(name, "notRisky")+`}`) })
		}
		wg.Wait()
		s.Wants(standingRisky, "", 200, "[]")
		storetest.Same(t, ignored(), append([]string{"jane"}, names...))
		storetest.Equal(t, len(parameter.AMLControl.In(s.service.Parameters.Set()).IgnoredUsers), 10, "known to this node")
		s.audits(standing.ActionAML, 9)

		s.Wants(standingConfirm, `{"userId":"nobody"}`, 404, "RECORD_NOT_FOUND")
	})
}

// late is a store of parameters whose next changes come too late.
type late struct {
	parameter.Store
	left int
}

func (l *late) Save(ctx context.Context, p parameter.Parameter, object json.RawMessage) (parameter.Parameter, error) {
	if l.left--; l.left >= 0 {
		return p, fault.New(fault.InvalidState, "changed meanwhile")
	}
	return l.Store.Save(ctx, p, object)
}

// A finding and a confirmation survive four concurrent changes of the parameter, and fail at the fifth.
func TestChangesOfTheParameterAreRetried(t *testing.T) {
	standingBoth(t, func(s standingSite) {
		store := &late{Store: s.service.Ignored}
		s.service.Ignored, s.service.Claims = store, kit.NewIntegration(s.DB)
		confirm := func() error {
			return storetest.Err(s.service.ConfirmAML(t.Context(), audit.By{UserID: "root"}, "jane"))
		}
		find := func(externalID string) error {
			_, err := s.service.Find(t.Context(), audit.By{UserID: "service"}, standing.Finding{ExternalID: externalID,
				UserID: "jane", Status: standing.Risky})
			return err
		}
		storetest.Must(t, find("f1"))
		tries := func(do func() error, before, after string) {
			t.Helper()
			for _, c := range []struct {
				late   int
				want   fault.Code
				status string
			}{{5, fault.InvalidState, before}, {4, "", after}} {
				store.left = c.late
				storetest.Wants(t, do(), c.want)
				if u, err := s.users.Get(t.Context(), "jane"); err != nil || u.AMLStatus != c.status {
					t.Errorf("after %d changes: %s, %v", c.late, u.AMLStatus, err)
				}
			}
		}
		tries(confirm, standing.Risky, user.NotRisky)
		tries(func() error { return find("f2") }, user.NotRisky, standing.Risky)
		s.audits(standing.ActionFinding, 2)
	})
}
