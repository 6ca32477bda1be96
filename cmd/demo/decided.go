package demo

import (
	"context"
	"strconv"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/people/dropdown"
	"castellan/domain/people/identity"
	"castellan/domain/people/kyc"
	"castellan/domain/session/profile"
	"castellan/persistence/people"
)

// decide stores the decisions on the identity and the address of an account.
func (r *run) decide(ctx context.Context, p *person) {
	store, at := people.NewDecisions(r.DB), p.CreatedAt.Add(30*time.Minute)
	for _, d := range []kyc.Decision{{Kind: kyc.Identity, Value: p.KYCConfirm},
		{Kind: kyc.Address, Value: p.AddressConfirmed}} {
		if d.Value == user.WaitingApproval {
			continue
		}
		d.UserID, d.DecidedBy, d.At = p.ID, r.team[1].ID, at
		if d.Value == user.Rejected {
			d.Reason = "belge okunmuyor"
			d.Reasons = map[string]any{"en": "the document cannot be read", "ar": "الوثيقة غير مقروءة"}
		}
		r.Clock.set(at)
		check(store.Add(ctx, d))
	}
}

// storeAnswers stores a verified person's answers: the five options on the use of the account.
func (r *run) storeAnswers(ctx context.Context, p *person) {
	if p.BirthDate == "" {
		return
	}
	s, i := sourceOf(r.Seed, "info "+p.ID, 0), identity.Info{UserID: p.ID}
	for n, q := range identity.Questions {
		o := pick(s, value(people.NewDropdowns(r.DB).List(ctx, dropdown.Query{Group: &q.Group})))
		if i.Choices[n].OptionID = o.ID; o.ExplainMandatory {
			i.Choices[n].Explanation = "aile bireyleri için"
		}
	}
	r.Clock.set(p.CreatedAt.Add(10 * time.Minute))
	value(people.NewIdentities(r.DB).Inform(ctx, i))
}

// renamed gives every eleventh person a former mail address.
func (r *run) renamed(ctx context.Context, p *person) {
	if p.place%11 != 0 && p.named == nil {
		return
	}
	s := sourceOf(r.Seed, "mail "+p.ID, 0)
	at := s.between(p.CreatedAt, r.Now)
	check(r.DB.Commit(ctx, profile.AddMailChange{MailChange: profile.MailChange{UserID: p.ID,
		Old: "eski" + strconv.Itoa(p.place) + "@posta.example", New: p.Email, ChangedBy: r.team[3].ID, At: at}}))
}
