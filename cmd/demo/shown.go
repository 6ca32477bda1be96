package demo

import (
	"context"
	"fmt"
	"time"

	"castellan/domain/addressbook"
	"castellan/domain/currency"
	"castellan/domain/document"
	"castellan/domain/geofilter"
	"castellan/domain/notification"
	"castellan/domain/user"
	"castellan/persistence"
	"castellan/persistence/delivery"
)

// papers are the documents that somebody sends, by their type.
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

// show makes what only those have who are shown with everything. It is called in the
// transaction of their account.
func (r *run) show(ctx context.Context, p *person) error {
	for _, part := range []func(context.Context, *person) error{r.documents, r.notices, r.wallets, r.filter,
		r.accept, r.tell, r.decide, r.renamed} {
		if err := part(ctx, p); err != nil {
			return fmt.Errorf("%s: %w", p.ID, err)
		}
	}
	return nil
}

// documents keeps the papers of every third person and of those who can log in. The
// bytes come first, as the service keeps them; where the transaction fails the next
// run writes the same keys.
func (r *run) documents(ctx context.Context, p *person) error {
	if p.place%3 != 0 && p.named == nil {
		return nil
	}
	store := persistence.NewDocuments(r.DB)
	s := sourceOf(r.Seed, "document "+p.ID, 0)
	for i, paper := range papers {
		at := s.between(p.CreatedAt.Add(time.Duration(i)*time.Minute), p.CreatedAt.Add(time.Duration(i+1)*time.Minute))
		d := document.Document{ID: s.id(at), UserID: p.ID, Name: paper.name, MimeType: "image/png", Type: paper.kind,
			NameTexts: map[string]string{"tr": paper.tr}, Status: document.Active, Reason: new(document.WaitingApproval),
			Path: s.key(document.Area, "", at), CreatedAt: at}
		content := picture(s, paper.face)
		if paper.pdf {
			d.MimeType = document.PDF
			content = pdf("DEMO", "Proof of address", "Reference "+s.number(8))
		}
		d.Size = int64(len(content))
		decided := p.KYCConfirm
		if paper.pdf {
			decided = p.AddressConfirmed
		}
		switch decided {
		case user.ManuelApproved, user.OCROrNFCApproved:
			d.Reason = new("approved")
		case user.Rejected:
			d.Status, d.Reason = "deActive", new("rejected")
		}
		if err := r.Files.Put(ctx, d.Path, r.Ring.Seal(content, []byte(d.ID))); err != nil {
			return err
		}
		r.Clock.set(at)
		if err := store.Add(ctx, d, max(d.Size, 32<<10), 1<<40); err != nil {
			return err
		}
	}
	return nil
}

// notes are what the service tells, by language.
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

// notices tells a person some things, most of which were read.
func (r *run) notices(ctx context.Context, p *person) error {
	s := sourceOf(r.Seed, "notice "+p.ID, 0)
	var read []string
	for range 1 + s.IntN(4) {
		at, n := s.between(p.CreatedAt, r.Now), pick(s, notes)
		add := notification.Add{Notification: notification.Notification{ID: s.id(at), UserID: p.ID, CreatedAt: at,
			Message: notification.Message{Topic: n.topic, Title: n.title[p.Language], Body: n.body[p.Language]}}}
		if err := r.DB.Commit(ctx, add); err != nil {
			return err
		}
		if s.chance(60) {
			read = append(read, add.ID)
		}
	}
	if len(read) == 0 {
		return nil
	}
	r.Clock.set(r.Now.Add(-time.Minute))
	_, err := delivery.NewNotifications(r.DB).Read(ctx, p.ID, read)
	return err
}

// wallets fills the address book of every seventh person.
func (r *run) wallets(ctx context.Context, p *person) error {
	if p.place%7 != 0 && p.named == nil {
		return nil
	}
	s := sourceOf(r.Seed, "wallet "+p.ID, 0)
	store := persistence.NewAddressBooks(r.DB)
	catalog, err := currency.Load(ctx, persistence.NewCurrencies(r.DB))
	if err != nil {
		return err
	}
	if _, err := store.Hold(ctx, p.ID); err != nil {
		return err
	}
	for i, name := range []string{"Ledger Nano", "Borsa"} {
		pair, _ := catalog.Pair(r.assets[(s.IntN(4)+i)%8].id)
		at := s.between(p.CreatedAt, r.Now)
		r.Clock.set(at)
		if _, err := store.Insert(ctx, p.ID, addressbook.Entry{Name: name, Address: outside(s, pair.Network.Code),
			CurrencyID: pair.CurrencyID, NetworkID: pair.NetworkID, CreatedAt: at, AddressAt: at}); err != nil {
			return err
		}
	}
	return nil
}

// filter writes the records of a geographic filter.
func (r *run) filter(ctx context.Context, p *person) error {
	for _, code := range p.Countries.Codes() {
		if err := r.DB.Commit(ctx, geofilter.Add{Country: geofilter.Country{UserID: p.ID, Code: code,
			CreatedAt: p.CreatedAt, UpdatedAt: p.CreatedAt}}); err != nil {
			return err
		}
	}
	return nil
}

// accept has most people accept the agreements that they must.
func (r *run) accept(ctx context.Context, p *person) error {
	store := persistence.NewAgreements(r.DB)
	s := sourceOf(r.Seed, "agreement "+p.ID, 0)
	for _, id := range r.agreements {
		if s.chance(20) || p.Status == user.Closed {
			continue
		}
		r.Clock.set(s.between(p.CreatedAt, r.Now))
		if err := store.Accept(ctx, id, p.ID); err != nil {
			return err
		}
	}
	return nil
}
