package app

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"castellan/cmd/app/trail"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/parameter"
	"castellan/domain/money/level"
	"castellan/domain/office/staffrequest"
	"castellan/domain/people/corporate"
	"castellan/domain/people/dropdown"
	"castellan/domain/permit/cronkey"
	"castellan/domain/permit/resource"
	"castellan/domain/permit/servicekey"
	httpapi "castellan/http"
	httpnotification "castellan/http/delivery/notification"
	httpaudit "castellan/http/kit/audit"
	"castellan/http/kit/country"
	httpparameter "castellan/http/kit/parameter"
	httplevel "castellan/http/money/level"
	httpapproval "castellan/http/office/staffrequest"
	httpcorporate "castellan/http/people/corporate"
	httpdropdown "castellan/http/people/dropdown"
	httpintegration "castellan/http/people/integration"
	httpresource "castellan/http/permit/resource"
	httpservicekey "castellan/http/permit/servicekey"
	"castellan/http/rest"
	"castellan/persistence/delivery"
	"castellan/persistence/kit"
	"castellan/persistence/money"
	"castellan/persistence/office"
	"castellan/persistence/people"
	"castellan/persistence/permit"
)

// backOffice builds the functions of administrators and scheduled clients, and the trail of their actions.
func (s *service) backOffice() error {
	store := permit.NewResources(s.DB)
	s.roles = resource.NewCache(store, s.users, httpapi.Table())
	registry := &resource.Admin{Store: store, Accounts: s.users, Changes: s.changes(change.Roles, s.roles),
		Table: httpapi.Table(), Dev: s.cfg.Dev}
	registry.Changes.Lock = store.Lock
	keys := permit.NewServiceKeys(s.DB)
	registry.Keyed = func(ctx context.Context, role string) (bool, error) {
		all, err := keys.List(ctx)
		return slices.ContainsFunc(all, func(k servicekey.Key) bool { return k.Role == role }), err
	}
	s.join(part{
		groups: groups(httpresource.Group{Admin: registry}, httpresource.Roles{Admin: registry},
			httpresource.Own{Table: endpoints, Permits: s.permits, Action: s.actionOf}),
		snapshots: []snapshot{
			copyOf(s.roles, change.Roles),
			{topic: change.Users, follow: s.roles.FollowAccounts},
		},
	})

	s.crons = cronkey.NewCache(permit.NewCronKeys(s.DB), s.Ring)
	s.join(part{snapshots: []snapshot{copyOf(s.crons, change.CronKeys)}})

	s.services = servicekey.NewCache(keys, s.Ring, time.Now)
	s.join(part{
		groups: groups(httpservicekey.Group{Service: &servicekey.Service{Store: keys, Roles: store.Roles,
			Changes: s.changes(change.ServiceKeys, s.services), Ring: s.Ring, AllowPlain: s.cfg.Dev,
			Action: s.actionsOfServices()}}),
		snapshots: []snapshot{copyOf(s.services, change.ServiceKeys)},
	})

	s.errands()
	if err := s.foreignUsers(); err != nil {
		return err
	}
	s.gateway()

	parameters := kit.NewParameters(s.DB)
	s.parameters = parameter.NewCache(parameters)
	s.join(part{
		groups: groups(httpparameter.Group{Service: &parameter.Service{Store: parameters,
			Changes: s.changes(change.Parameters, s.parameters)}}),
		snapshots: []snapshot{copyOf(s.parameters, change.Parameters)},
	})

	s.join(part{groups: groups(httpnotification.Group{Store: delivery.NewNotifications(s.DB)})})

	s.denials = trail.NewDenials(s.DB, time.Now, s.log)
	s.join(part{
		groups: groups(httpaudit.Group{Store: kit.NewAudit(s.DB),
			State: func(ctx context.Context) (audit.State, error) {
				return kit.NewAudit(s.DB).State(ctx, s.Ring.Audit())
			}}),
		observe: s.denials.Observe,
		tasks: []task{{10 * time.Second, "refusals could not be audited",
			func(ctx context.Context) error { return s.denials.Flush(ctx, false) }}},
	})

	s.join(part{groups: groups(httplevel.Group{Service: &level.Service{
		Store: money.NewLevels(s.DB), Users: s.users, Changes: s.changes("", nil)}})})
	s.join(part{groups: groups(country.Group{CDN: cmp.Or(s.cfg.Geo.CDNURL, s.publicURL)})})
	s.join(part{groups: groups(httpdropdown.Group{Service: &dropdown.Service{
		Store: people.NewDropdowns(s.DB), Changes: s.changes("", nil)}})})
	s.join(part{groups: groups(httpapproval.Group{Service: &staffrequest.Service{Deploys: office.NewDeploys(s.DB),
		VPNs: office.NewVPNs(s.DB), Users: s.users, Changes: s.changes("", nil)}})})
	companies := people.NewCorporate(s.DB)
	linked := &corporate.Service{Store: companies, Users: s.users, Hasher: s.hasher, Changes: s.changes("", nil),
		DefaultPassword: s.cfg.Corporate.DefaultPassword.Reveal()}
	linked.Changes.Lock, linked.Claims = companies.Lock, s.external
	s.join(part{groups: groups(httpcorporate.Group{Service: linked}, httpintegration.Applications{Service: linked})})
	return nil
}

// endpoints are all endpoints of the program; serving them happens elsewhere.
var endpoints = sync.OnceValue(func() []rest.Endpoint { return httpapi.Endpoints() })

// permits returns the decision of the request guards.
func (s *service) permits(who rest.Caller, e *rest.Endpoint) (permitted, asAdmin bool) {
	return s.guards().Permits(who, e)
}

// actionOf returns the code of the challenge that a call of an endpoint starts: the configured code, or the endpoint's
// own. If the request selects one of several, all of them are returned.
func (s *service) actionOf(e *rest.Endpoint) string {
	return cmp.Or(s.cfg.MFA.Guarded[e.Key()], e.Starts)
}

// byKey has the endpoints by "METHOD /path".
var byKey = sync.OnceValue(func() map[string]*rest.Endpoint {
	m := map[string]*rest.Endpoint{}
	for i, all := 0, endpoints(); i < len(all); i++ {
		m[all[i].Key()] = &all[i]
	}
	return m
})

// shows reports whether a caller may call an endpoint, also for other users if users may call it for themselves.
func (s *service) shows(who rest.Caller, endpoint string) bool {
	e := byKey()[endpoint]
	if e == nil {
		return false
	}
	permitted, asAdmin := s.permits(who, e)
	return permitted && (asAdmin || e.Audience == rest.Admin)
}
