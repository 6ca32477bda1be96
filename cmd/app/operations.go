package app

import (
	"fmt"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/delivery/outbox"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/blob"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/id"
	"castellan/domain/kit/job"
	"castellan/domain/money/accounting"
	"castellan/domain/office/broadcast"
	"castellan/domain/people/agreement"
	"castellan/domain/permit/resource"
	"castellan/domain/proof/stepup"
	httpaccounting "castellan/http/money/accounting"
	httpbroadcast "castellan/http/office/broadcast"
	httpagreement "castellan/http/people/agreement"
	httpintegration "castellan/http/people/integration"
	"castellan/outbound/courier"
	"castellan/outbound/dispatch"
	"castellan/persistence/money"
	"castellan/persistence/people"
	"castellan/persistence/proof"
)

// operations builds the bulk functions of administrators: notifications, SMS and agreements.
func (s *service) operations() error {
	post := broadcast.Post{Senders: s.senders, Keep: s.keep}
	many := &broadcast.Service{Users: s.users, Devices: proof.NewDevices(s.DB), Jobs: s.jobs,
		Changes: s.changes("", nil), Parameters: s.parameters, Post: post, Open: s.Ring.Open,
		MaySend: func(caller, userID string) error { return s.roles.MayWrite(caller, userID, resource.General) }}
	store := people.NewAgreements(s.DB)
	terms := &agreement.Service{Store: store, Files: s.files, Users: s.users, Jobs: s.jobs, Changes: s.changes("", nil)}
	s.join(part{groups: groups(httpbroadcast.Group{Service: many}), kinds: many.Kinds()})
	s.join(part{
		groups: groups(httpagreement.Group{Service: terms}),
		kinds:  []job.Kind{terms.Mailing(post)},
		files:  []blob.Owner{{Area: agreement.Area, ReferencedKeys: store.ReferencedKeys}},
	})
	return s.accounting()
}

// accounting builds the creation and delivery of journals.
func (s *service) accounting() error {
	journals := &accounting.Service{Store: money.NewAccounting(s.DB), Files: s.files, Jobs: s.jobs,
		Changes: s.changes("", nil), Codes: s.codes}
	if a := s.cfg.Accounting; a.URL != "" {
		to, err := courier.New(courier.Config{URL: a.URL, Secret: a.Secret.Reveal(), CAFile: a.CAFile})
		if err != nil {
			return fmt.Errorf("accounting: %w", err)
		}
		journals.Deliver = to.Post
	}
	s.join(part{groups: groups(httpaccounting.Group{Service: journals}, httpintegration.Accounting{Service: journals}),
		kinds: []job.Kind{journals.Integration()}})
	return nil
}

// codes names an asset, by its number if it has no pair.
func (s *service) codes(asset int64) (currencyCode, networkCode string, err error) {
	p, err := s.currencies.Asset(asset)
	return p.Currency.Code, p.Network.Code, err
}

// keep stores a message of a job in the outbox of development mode, which replaces the channels that are not
// configured.
func (s *service) keep(userID string, m message.Rendered) []commit.Write {
	if _, local := s.senders[m.Channel].(dispatch.Local); !local {
		return nil
	}
	now := time.Now()
	row := outbox.Message{ID: id.New(now), UserID: userID, Channel: m.Channel, Uncounted: true, State: outbox.Sent,
		Destination: stepup.Destination(s.Ring, m.To), CreatedAt: now, ExpiresAt: now.Add(outboxLife), LeaseUntil: now,
		Attempts: 1}
	row.MethodID = row.ID
	plain, _ := m.AppendBinary(nil) // it never returns an error
	row.Payload = s.Ring.Seal(plain, challenge.PayloadData("", row.ID, 0))
	return []commit.Write{outbox.Add{Message: row}}
}
