package stepup

import (
	"context"
	"fmt"
	"slices"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/legible"
)

// Approval is a push that waits for an answer, as its device shows it.
type Approval struct {
	Challenge challenge.Challenge
	Method    challenge.Method
	Left      time.Duration // until the push expires
	Title     string        // of the action
	Text      string        // the question to the user
	Country   string        // of the starter, in the language of Title
	Rows      [][2]string   // of the info table: header and value
	Document  []byte        // the intent
}

// Ongoing lists the pushes that wait for the answer of a user's devices, newest first (D-2FA-25). country turns a
// country's code into its name; nil means no names. It omits challenges started with credentials that no longer hold.
func (s *Answerer) Ongoing(ctx context.Context, userID, asked string,
	country func(code, language string) string) ([]Approval, error) {
	out := []Approval{}
	account, err := s.Accounts.Account(ctx, userID)
	if fault.CodeOf(err) == fault.RecordNotFound {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	now, lang := s.Now(), s.language(asked, account.Language)
	pending, err := s.Store.Pending(ctx, userID, now)
	if err != nil {
		return nil, err
	}
	for _, p := range pending {
		c := p.Challenge
		i := slices.IndexFunc(c.Methods, isPush)
		if i < 0 || !approvable(c) ||
			c.Methods[i].Order > 0 || now.UnixMilli() >= c.Methods[i].ExpiresAt || c.CV != account.CV ||
			c.Starter.SessionID != "" && !s.Sessions.Live(userID, c.Starter.SessionID, c.SV) {
			continue
		}
		a := Approval{Challenge: c, Method: c.Methods[i], Left: time.UnixMilli(c.Methods[i].ExpiresAt).Sub(now),
			Title: legible.Escape(s.Catalog().ActionTitle(c.Action, lang))}
		a.Text = fmt.Sprintf(question(lang), a.Title)
		if country != nil && c.Starter.Country != "" {
			a.Country = country(c.Starter.Country, lang)
		}
		if a.Rows, err = s.rows(p, lang, a.Country); err != nil {
			return nil, err
		}
		if a.Document, err = s.Document(c.ID, p.Intent); err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// question returns the text that requests the approval of an action.
func question(lang string) string {
	switch lang {
	case "tr":
		return "Onaylıyor musunuz: %s"
	case "ar":
		return "هل توافق على: %s"
	}
	return "Do you approve: %s"
}

// rows returns the action's headers that have a value.
func (s *Answerer) rows(p challenge.Insert, lang, country string) ([][2]string, error) {
	values := map[string]string{mfa.HeaderDevice: deviceOf(p.Starter), mfa.HeaderIP: p.Starter.IP,
		mfa.HeaderCountry: country}
	of, _ := s.Actions.Of(p.Action, p.Service)
	if describe := of.Describe; describe != nil && p.Command != nil {
		plain, err := s.Ring.Open(p.Command, challenge.CommandData(p.ID))
		if err != nil {
			return nil, fmt.Errorf("open the command of challenge %s: %w", p.ID, err)
		}
		for _, d := range describe(plain) {
			values[d.Key] = d.Value
		}
	}
	action, _ := s.Catalog().Action(p.Action)
	rows := [][2]string{}
	for _, h := range action.Headers {
		if v := values[h.Key]; v != "" {
			rows = append(rows, [2]string{legible.Escape(h.Label.In(lang)), legible.Escape(v)})
		}
	}
	return rows, nil
}
