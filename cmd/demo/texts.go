package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/richtext"
	"castellan/domain/kit/slug"
	"castellan/domain/office/announcement"
	"castellan/domain/office/contract"
	"castellan/domain/people/agreement"
	"castellan/persistence/office"
	"castellan/persistence/people"
)

// clauses are the titles of the parts of a contract.
var clauses = []string{"Scope", "Your account", "Security of your account", "Fees", "Deposits and withdrawals", "Risks",
	"Personal data", "Changes of these terms", "End of the contract", "Law and place of jurisdiction"}

// contracts adds a contract in three versions to those of a new installation, and details to each: one is replaced, one
// is active and one is a draft.
func (r *run) contracts(ctx context.Context) {
	desk, by := r.contractDesk(), audit.By{UserID: r.team[0].ID}
	r.Clock.set(r.start)
	first := value(desk.Add(ctx, by, contract.Contract{Code: "RISK_NOTICE", Name: "Risk notice", Turkish: "Risk bildirimi",
		Arabic: "إشعار المخاطر", Version: "1.0"}))
	for i, c := range value(desk.Store.Contracts(ctx, contract.Query{})) {
		var drafts []contract.Draft
		for n, title := range clauses[:len(clauses)-2*i] {
			drafts = append(drafts, contract.Draft{Title: title, OrderNo: new(int64(n+1) * 10),
				Content: fmt.Sprintf("<p><b>%d.</b> %s: an example text of <i>%s</i>.</p><ul><li>First.</li>"+
					"<li>Second.</li></ul>", n+1, title, c.Name)})
		}
		value(desk.AddDetails(ctx, by, c.ID, drafts))
	}
	publish := func(id int64) {
		_, _, err := desk.Publish(ctx, by, id)
		check(err)
	}
	publish(first.ID)
	r.Clock.set(r.start.AddDate(0, 6, 0))
	second := value(desk.AddVersion(ctx, by, first.ID, "2.1"))
	value(desk.AddDetails(ctx, by, second.ID, []contract.Draft{{Title: clauses[len(clauses)-1],
		Content: "<p>Ankara.</p>"}}))
	publish(second.ID)
	value(desk.AddVersion(ctx, by, second.ID, "2.2"))
}

// news are the announcements, by language.
var news = []struct{ tr, en, ar, body string }{
	{"Yeni Ankara ofisimiz açıldı", "Our new office in Ankara", "مكتبنا الجديد في أنقرة",
		"Pazartesi günü kapılarımızı açıyoruz."},
	{"Planlı bakım çalışması", "Planned maintenance", "صيانة مخطط لها", "Hizmetlerimiz gece yarısı bir saat kapalıdır."},
	{"Komisyonsuz hafta", "A week without fees", "أسبوع بلا رسوم", "Bu hafta işlemlerden komisyon alınmaz."},
	{"AVAX listelendi", "AVAX is listed", "تم إدراج AVAX", "AVAX yatırma ve çekme işlemleri açıldı."},
	{"Güvenlik hatırlatması", "A reminder about security", "تذكير أمني", "Kodlarınızı kimseyle paylaşmayın."},
	{"Bayram çalışma saatleri", "Opening hours on holidays", "ساعات العمل في العطل",
		"Destek ekibimiz bayramda da yanınızda."},
	{"Mobil uygulama 4.2", "Version 4.2 of the app", "الإصدار 4.2 من التطبيق", "Yeni ana ekran ve daha hızlı giriş."},
	{"LUNC işlemleri durduruldu", "LUNC is suspended", "تم تعليق LUNC", "LUNC yatırma ve çekme işlemleri kapalıdır."},
}

// announcements creates announcements over the months: past, present and future ones, drafts, and one for the slider.
func (r *run) announcements(ctx context.Context) {
	store, policy, admin := office.NewAnnouncements(r.DB), richtext.New(""), r.team[0].ID
	for i, n := range news {
		s := sourceOf(r.Seed, "announcement", i)
		at := r.Now.AddDate(0, 0, -50*(len(news)-3)+50*i)
		html := func(title, body string) string { return policy.Clean("<h2>" + title + "</h2><p>" + body + "</p>") }
		a := announcement.Announcement{Title: n.tr, Message: n.body, HTML: new(html(n.tr, n.body)),
			Titles:   announcement.Texts{"tr": n.tr, "en": n.en, "ar": n.ar},
			Messages: announcement.Texts{"tr": n.body, "en": n.en + ".", "ar": n.ar + "."},
			HTMLs:    announcement.Texts{"tr": html(n.tr, n.body), "en": html(n.en, n.en), "ar": html(n.ar, n.ar)},
			Policy:   policy.ID, StartAt: at, EndAt: at.AddDate(0, 2, 0), Active: i%4 != 1, Priority: int64(i % 3),
			OrderNo: new(int64(i)), Expanded: new(i%2 == 0), Pinned: new(i == 4), CreatedBy: admin, UpdatedBy: admin,
			Slug: slug.Of(n.tr)}
		if i == 6 {
			a.Slider, a.SliderName, a.Type = new(true), "app-4-2", new(int64(1))
			a.Route, a.ClientType = json.RawMessage(`{"screen":"update"}`), new("mobile")
			for platform := range a.Pictures {
				a.Pictures[platform] = s.key(announcement.Area, ".png", at)
				check(r.Files.Put(ctx, a.Pictures[platform], card(s, true)))
			}
		}
		check(a.Check(true))
		r.Clock.set(at.Add(-24 * time.Hour))
		value(store.Add(ctx, a))
	}
}

// publish publishes agreements in versions.
func (r *run) publish(ctx context.Context) {
	store := people.NewAgreements(r.DB)
	for i, a := range []agreement.Agreement{
		{Name: "Kullanıcı sözleşmesi", Version: "1", Description: "Terms of use", AcceptRequired: true},
		{Name: "Aydınlatma metni", Version: "1", Description: "Notice about personal data", AcceptRequired: true},
		{Name: "Kullanıcı sözleşmesi", Version: "2", Description: "Terms of use, with the new fees", AcceptRequired: true},
		{Name: "Ticari ileti izni", Version: "1", Description: "Consent to campaigns"},
	} {
		s, at := sourceOf(r.Seed, "agreement", i), r.start.AddDate(0, 3*i, 1)
		a.FilePath, a.CreatedBy = s.key(agreement.Area, ".pdf", at), r.team[0].ID
		check(r.Files.Put(ctx, a.FilePath, pdf("DEMO", a.Name, "Version "+a.Version)))
		r.Clock.set(at)
		value(store.Add(ctx, a))
	}
}
