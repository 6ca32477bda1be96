package demo

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/delivery/notification"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/job"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/picture"
	"castellan/domain/kit/richtext"
	"castellan/domain/money/addressbook"
	"castellan/domain/money/currency"
	"castellan/domain/money/ledger"
	"castellan/domain/money/limit"
	"castellan/domain/money/transaction"
	"castellan/domain/office/contract"
	"castellan/domain/people/corporate"
	"castellan/domain/people/document"
	"castellan/domain/people/registration"
	"castellan/domain/people/standing"
	"castellan/http/rest"
	"castellan/persistence/account"
	"castellan/persistence/kit"
	moneystore "castellan/persistence/money"
	"castellan/persistence/office"
	"castellan/persistence/people"
)

// The services around the demonstration, as the audit names them. None has a key.
var (
	registrar     = audit.By{UserID: rest.ByService + "demo-registration"}
	wallet        = audit.By{UserID: rest.ByService + "demo-wallet"}
	screening     = audit.By{UserID: rest.ByService + "demo-screening"}
	corporateDesk = audit.By{UserID: rest.ByService + "demo-corporate"}
)

// doors are the domain services behind the endpoints that create and change records. Their clock is the run's, so a
// record has the instant at which it would have arrived.
type doors struct {
	deposits    *transaction.Service
	withdrawals *transaction.Withdrawals
	standing    *standing.Service
	holds       []string // ids of the jobs that hold withdrawals
	corporate   *corporate.Service
	documents   *document.Service
	books       *addressbook.Service
	jobs        *job.Runner
}

// quota bounds the documents of a user, in bytes.
const quota = 1 << 30

// buildServices builds the services on the catalogue, which is committed.
func (r *run) buildServices(ctx context.Context) {
	currencies := currency.NewCache(moneystore.NewCurrencies(r.DB))
	parameters := parameter.NewCache(kit.NewParameters(r.DB))
	book := value(message.NewBook("Castellan", nil))
	check(errors.Join(currencies.Reload(ctx), parameters.Reload(ctx)))
	users, claims, now := account.NewUsers(r.DB), kit.NewIntegration(r.DB), r.Clock.Now
	transactions, own := moneystore.NewTransactions(r.DB), r.changes("", nil)
	money := &ledger.Ledger{Store: moneystore.NewLedger(r.DB), Commit: r.DB, Now: now,
		Decimals: func(_ context.Context, asset int64) (int, error) { return currencies.Catalog().Decimals(asset) }}
	limits := &limit.Service{Users: users, Levels: moneystore.NewLevels(r.DB), Store: moneystore.NewLimits(r.DB),
		Rates: moneystore.NewRates(r.DB), Catalog: currencies.Catalog, Now: now}
	jobs := kit.NewJobs(r.DB)
	d := &doors{
		deposits: &transaction.Service{Ledger: money, Users: users, Currencies: currencies, Parameters: parameters,
			Now: now, Store: transactions, Changes: own, Messenger: inside{book, now}, Claims: claims,
			Jobs:    &job.Service{Store: jobs, Changes: own, Seal: r.Ring.Seal},
			Await:   func(context.Context, string) (job.Job, error) { return job.Job{}, nil }, // treasury runs the job
			MayMove: func(string, string) error { return nil }},
		withdrawals: &transaction.Withdrawals{Ledger: money, Store: transactions, Users: users, Currencies: currencies,
			Parameters: parameters, Limits: limits, Books: moneystore.NewAddressBooks(r.DB), Rules: r.Rules,
			Waiting: r.Waiting, Claims: claims, Now: now},
		standing: &standing.Service{Store: people.NewStandings(r.DB), Users: users, Parameters: parameters,
			Ignored: kit.NewParameters(r.DB), Claims: claims,
			Changes: r.changes(change.Parameters, people.NewStandings(r.DB).Lock)},
		corporate: &corporate.Service{Store: people.NewCorporate(r.DB), Users: users, Hasher: r.Hasher,
			Changes: r.changes("", people.NewCorporate(r.DB).Lock), Claims: claims},
		documents: &document.Service{Store: people.NewDocuments(r.DB), Users: users, Files: r.Files,
			Pictures: picture.NewDecoder(), Ring: r.Ring, Changes: own, Values: parameters.Set, Quota: quota},
		books: &addressbook.Service{Store: moneystore.NewAddressBooks(r.DB), Changes: own, Currencies: currencies,
			Rules: r.Rules, Waiting: r.Waiting},
	}
	kind := d.deposits.Kind()
	d.jobs = &job.Runner{Store: jobs, Commit: r.DB, Kinds: map[string]job.Kind{kind.Name: kind}, Open: r.Ring.Open,
		Now: now, Name: "demo", Leaving: context.Background(), Log: slog.New(slog.DiscardHandler)}
	queueHold, parts := transaction.HoldQueued(d.deposits.Jobs), d.withdrawals.Holding()
	d.jobs.Kinds[parts.Name] = parts
	d.standing.Hold = func(by audit.By, userID string) (commit.Write, error) {
		w, err := queueHold(by, userID)
		if err == nil {
			d.holds = append(d.holds, w.(job.Add).ID)
		}
		return w, err
	}
	r.doors = d
}

// contractDesk returns the service that creates contracts and publishes their versions.
func (r *run) contractDesk() *contract.Service {
	store := office.NewContracts(r.DB)
	return &contract.Service{Store: store, HTML: richtext.New(""), Changes: r.changes("", store.Lock)}
}

// inside notifies users of events in their accounts. No mail or SMS is sent: the people do not exist.
type inside struct {
	book *message.Book
	now  func() time.Time
}

// Notify creates the notification of a user.
func (m inside) Notify(to challenge.Account, topic, template string, v message.Values, _ string,
	_ ...challenge.Name) []commit.Write {
	text := m.book.Render(message.MAIL, template, to.Language, "", v)
	return []commit.Write{notification.Add{Notification: notification.New(m.now(), to.UserID, notification.Message{
		Topic: topic, Title: text.Subject, Body: strings.TrimSpace(strings.TrimPrefix(text.Text, text.Subject))})}}
}

// register returns the writes that register an account, with its verified data.
func (r *run) register(p *person) []commit.Write {
	u, writes, err := registration.Newcomer{ExternalID: p.ref, CountryCode: p.CountryCode,
		Phone: strings.TrimPrefix(p.Phone, "+"+p.CountryCode), Email: p.Email, Name: p.Name, Surname: p.Surname,
		Language: p.Language, Type: p.Type}.Import(registrar, p.User)
	check(err)
	p.User = u
	return writes
}

// neighbours creates the records of the wallet and the screening service, in the transaction of ctx. A finding comes
// last: it prohibits withdrawals of an account.
func (r *run) neighbours(ctx context.Context, all []*person) {
	for _, p := range all {
		if p.purse != nil {
			p.purse.works(ctx)
		}
		if p.found == "" {
			continue
		}
		s := sourceOf(r.Seed, "finding "+p.ID, 0)
		r.Clock.set(s.between(p.CreatedAt, r.Now))
		value(r.doors.standing.Find(ctx, screening, standing.Finding{ExternalID: p.ref, UserID: p.ID,
			Status: p.found, Source: pick(s, []string{"sanctions-list", "transactions", "adverse-media"}),
			Reference: "CASE-" + s.number(7), Detail: "an example finding"}))
	}
	for _, id := range r.doors.holds {
		r.runJob(ctx, id)
	}
}

// runJob runs a job to its end.
func (r *run) runJob(ctx context.Context, jobID string) {
	for over := false; !over; {
		due, ended, err := r.doors.jobs.Step(ctx, jobID)
		check(err)
		if over = ended; due.After(r.Clock.Now()) {
			r.Clock.set(due)
		}
	}
}
