package app

import (
	"context"
	"encoding/json"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/blob"
	"castellan/domain/kit/richtext"
	"castellan/domain/office/announcement"
	"castellan/domain/office/contract"
	"castellan/domain/office/foureyes"
	"castellan/http/auth"
	"castellan/http/edge"
	httpannouncement "castellan/http/office/announcement"
	httpcontract "castellan/http/office/contract"
	httpfoureyes "castellan/http/office/foureyes"
	"castellan/http/rest"
	"castellan/persistence/office"
	"castellan/persistence/proof"
)

// content builds the texts that administrators write for users.
func (s *service) content() error {
	html := richtext.New(s.cdnURL)
	contracts := office.NewContracts(s.DB)
	agreed := &contract.Service{Store: contracts, HTML: html, Changes: s.changes("", nil)}
	agreed.Changes.Lock = contracts.Lock
	s.join(part{groups: groups(httpcontract.Group{Service: agreed})})
	s.registration(agreed)
	s.bootstrap()

	announcements := office.NewAnnouncements(s.DB)
	told := &announcement.Service{Store: announcements, HTML: html, Pictures: s.pictures, Files: s.files,
		Changes: s.changes("", nil)}
	told.Changes.Lock = announcements.Lock
	s.join(part{groups: groups(httpannouncement.Group{Service: told, CDN: s.cdnURL}),
		files: []blob.Owner{{Area: announcement.Area, ReferencedKeys: announcements.ReferencedKeys}}})
	return nil
}

// fourEyesLife is how long approval requests are kept.
const fourEyesLife = 30 * 24 * time.Hour

// fourEyes builds the approval of calls by a second person. It executes approved calls through the server, which is
// created later.
func (s *service) fourEyes() auth.SecondPerson {
	store := office.NewFourEyes(s.DB)
	service := &foureyes.Service{Store: store, Changes: s.changes("", nil), Account: accounts{s.users}.Account,
		Live: s.revocations.Live, Shared: proof.NewDevices(s.DB).Shared, Seal: s.Ring.Seal, Open: s.Ring.Open,
		TTL: s.cfg.MFA.FourEyesTTL, Secret: s.holdsSecret,
		Run: func(ctx context.Context, request json.RawMessage) (json.RawMessage, error) {
			return captured(request, func(c edge.Captured) (json.RawMessage, error) { return s.server.CarryOut(ctx, c) })
		},
		Public: func(endpoint string, response json.RawMessage) (json.RawMessage, error) {
			return s.server.WithoutSecrets(endpoint, response)
		}}
	group := httpfoureyes.Group{Service: service, Fresh: s.feed.Poll,
		Permit: func(ctx context.Context, who rest.Caller, key string) error { return s.server.Permit(ctx, who, key) },
		Judge: func(ctx context.Context, who rest.Caller, request json.RawMessage) error {
			var c edge.Captured
			if err := json.Unmarshal(request, &c); err != nil {
				return err
			}
			return s.server.PermitCaptured(ctx, who, c)
		},
		RunAs: func(ctx context.Context, who rest.Caller, request json.RawMessage) (json.RawMessage, error) {
			return captured(request, func(c edge.Captured) (json.RawMessage, error) {
				c.Caller = who
				return s.server.CarryOut(ctx, c)
			})
		},
		Look: func(ctx context.Context, request json.RawMessage) (fields json.RawMessage, all []rest.Change, err error) {
			var c edge.Captured
			if err = json.Unmarshal(request, &c); err == nil {
				fields, err = c.Asked()
			}
			if err == nil {
				all, err = s.server.Preview(ctx, c)
			}
			return fields, all, err
		},
		Details: func(request json.RawMessage) ([]challenge.Detail, error) {
			return captured(request, edge.Captured.Details)
		}}
	s.join(part{
		groups:  groups(group),
		actions: []challenge.Action{group.Action()},
		purge:   after(fourEyesLife, store.Purge),
	})
	return auth.SecondPerson{Service: service, Commit: s.commit}
}

// captured reads a captured call and passes it to use.
func captured[T any](request json.RawMessage, use func(edge.Captured) (T, error)) (v T, err error) {
	var c edge.Captured
	if err = json.Unmarshal(request, &c); err == nil {
		v, err = use(c)
	}
	return v, err
}

// holdsSecret reports whether the answer of an endpoint, by its key, holds a secret. The server is created later.
func (s *service) holdsSecret(endpoint string) bool { return s.server.HoldsSecret(endpoint) }

func endpointSet(keys []string) map[string]bool {
	set := make(map[string]bool, len(keys))
	for _, key := range keys {
		set[key] = true
	}
	return set
}
