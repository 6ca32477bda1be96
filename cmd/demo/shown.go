package demo

import (
	"context"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/delivery/notification"
	"castellan/domain/kit/audit"
	"castellan/domain/money/addressbook"
	"castellan/domain/people/document"
	"castellan/domain/session/geofilter"
	"castellan/persistence/delivery"
	"castellan/persistence/people"
)

// papers are the documents that a person uploads, by their type.
var papers = []struct {
	kind      int64
	name, tr  string
	pdf, face bool
}{
	{1, "identity-front.png", "Kimlik ön yüzü", false, false},
	{2, "identity-back.png", "Kimlik arka yüzü", false, false},
	{3, "selfie.png", "Özçekim", false, true},
	{4, "proof-of-address.pdf", "Adres belgesi", true, false},
}

// show creates the records that only the shown people have. It is called in the transaction of their account.
func (r *run) show(ctx context.Context, p *person) {
	r.documents(ctx, p)
	r.notices(ctx, p)
	r.wallets(ctx, p)
	r.filter(ctx, p)
	r.accept(ctx, p)
	r.storeAnswers(ctx, p)
	r.decide(ctx, p)
	r.renamed(ctx, p)
}

// documents uploads the papers of every third person and of those who can log in, and reviews them. The bytes are
// written before the rows; if the transaction fails, the next run writes the same keys.
func (r *run) documents(ctx context.Context, p *person) {
	if p.place%3 != 0 && p.named == nil {
		return
	}
	s := sourceOf(r.Seed, "document "+p.ID, 0)
	papersOf, reviewer := r.doors.documents, audit.By{UserID: r.team[1].ID}
	for i, paper := range papers {
		at := s.between(p.CreatedAt.Add(time.Duration(i)*time.Minute), p.CreatedAt.Add(time.Duration(i+1)*time.Minute))
		content := card(s, paper.face)
		if paper.pdf {
			content = pdf("DEMO", "Proof of address", "Reference "+s.number(8))
		}
		r.Clock.set(at)
		d := value(papersOf.Add(ctx, audit.By{UserID: p.ID}, document.Document{UserID: p.ID, Name: paper.name,
			Type: paper.kind, NameTexts: map[string]string{"tr": paper.tr}}, content, document.Fields{}))
		decided := p.KYCConfirm
		if paper.pdf {
			decided = p.AddressConfirmed
		}
		c := document.Change{ID: d.ID}
		switch decided {
		case user.ManuelApproved, user.OCROrNFCApproved:
			c.Status, c.Reason = new(document.Active), new(new(document.Approved))
		case user.Rejected:
			c.Status, c.Reason = new(document.DeActive), new(new(document.Rejected))
		default:
			continue // it was not reviewed
		}
		r.Clock.set(p.CreatedAt.Add(30 * time.Minute))
		value(papersOf.Change(ctx, reviewer, true, c))
	}
}

// notes are the notifications of the service, by language.
var notes = []struct {
	topic string
	title map[string]string
	body  map[string]string
}{
	{"security", map[string]string{"tr": "Yeni cihazdan giriş", "en": "Login from a new device",
		"ar": "تسجيل دخول من جهاز جديد"},
		map[string]string{"tr": "Siz değilseniz şifrenizi değiştirin.", "en": "If it was not you, change your password.",
			"ar": "إذا لم تكن أنت فغيّر كلمة المرور."}},
	{"deposit", map[string]string{"tr": "Yatırma işleminiz tamamlandı", "en": "Your deposit is complete",
		"ar": "اكتمل إيداعك"}, map[string]string{"tr": "Tutar hesabınıza geçti.",
		"en": "The amount is in your account.", "ar": "المبلغ في حسابك."}},
	{"campaign", map[string]string{"tr": "Komisyonsuz hafta", "en": "A week without fees", "ar": "أسبوع بلا رسوم"},
		map[string]string{"tr": "Pazartesiden pazara kadar.", "en": "From Monday to Sunday.",
			"ar": "من الاثنين إلى الأحد."}},
}

// notices gives a person some notifications, most of which were read.
func (r *run) notices(ctx context.Context, p *person) {
	s := sourceOf(r.Seed, "notice "+p.ID, 0)
	var read []string
	for range 1 + s.IntN(4) {
		at, n := s.between(p.CreatedAt, r.Now), pick(s, notes)
		add := notification.Add{Notification: notification.Notification{ID: s.id(at), UserID: p.ID, CreatedAt: at,
			Message: notification.Message{Topic: n.topic, Title: n.title[p.Language], Body: n.body[p.Language]}}}
		check(r.DB.Commit(ctx, add))
		if s.chance(60) {
			read = append(read, add.ID)
		}
	}
	if len(read) > 0 {
		r.Clock.set(r.Now.Add(-time.Minute))
		value(delivery.NewNotifications(r.DB).Read(ctx, p.ID, read))
	}
}

// wallets fills the address book of every seventh person.
func (r *run) wallets(ctx context.Context, p *person) {
	if p.place%7 != 0 && p.named == nil {
		return
	}
	s := sourceOf(r.Seed, "wallet "+p.ID, 0)
	for i, name := range []string{"Ledger Nano", "Borsa"} {
		a := r.assets[(s.IntN(4)+i)%8]
		r.Clock.set(s.between(p.CreatedAt, r.Now))
		value(r.doors.books.Add(ctx, audit.By{UserID: p.ID}, addressbook.New{Name: name,
			CurrencyCode: a.currency, NetworkCode: a.network, Address: outside(s, a.network)}))
	}
}

// filter writes the records of a geographic filter.
func (r *run) filter(ctx context.Context, p *person) {
	for _, code := range p.Countries.Codes() {
		check(r.DB.Commit(ctx, geofilter.Add{Country: geofilter.Country{UserID: p.ID, Code: code,
			CreatedAt: p.CreatedAt, UpdatedAt: p.CreatedAt}}))
	}
}

// accept makes most people accept the required agreements.
func (r *run) accept(ctx context.Context, p *person) {
	store := people.NewAgreements(r.DB)
	s := sourceOf(r.Seed, "agreement "+p.ID, 0)
	for _, id := range r.agreements {
		if s.chance(20) || p.Status == user.Closed {
			continue
		}
		r.Clock.set(s.between(p.CreatedAt, r.Now))
		check(store.Accept(ctx, id, p.ID))
	}
}
