package stepup

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/factor/intent"
	"castellan/domain/factor/mfa"
	"castellan/domain/kit/geo"
	"castellan/domain/kit/legible"
)

// describe builds the intent of a new challenge: its details, then the time and the origin of its start. It sets the
// digest of the challenge and returns the sealed document. A decoy takes the same steps. A stored text that breaks the
// rule of package legible is escaped.
func (s *Starter) describe(c *challenge.Challenge, r challenge.StartRequest, describe func([]byte) []challenge.Detail,
	sealedCommand []byte) []byte {
	lang := s.language(r.Starter.Language, r.Account.Language)
	details := r.Details
	if details == nil && describe != nil {
		details = describe(r.Command)
	}
	catalog := s.Catalog()
	action, _ := catalog.Action(c.Action)
	d := intent.Document{Version: intent.Version, ChallengeID: c.ID, Action: c.Action, UserID: c.Owner(),
		CreatedAt: c.CreatedAt, Language: lang, Title: legible.Escape(cmp.Or(r.Title, catalog.ActionTitle(c.Action, lang))),
		Rows: make([]intent.Row, 0, len(details)+4), CommandDigest: intent.Digest(sealedCommand)}
	from := origin(*c, lang)
	for _, part := range [3][]challenge.Detail{details, from[:], recalled(*c)} {
		for _, one := range part {
			if one.Value != "" {
				d.Rows = append(d.Rows, intent.Row{Key: legible.Escape(one.Key),
					Label: legible.Escape(label(action, one, lang)), Value: legible.Escape(one.Value)})
			}
		}
	}
	document := d.Canonical()
	c.IntentDigest = intent.Digest(document)
	return s.Ring.Seal(document, challenge.IntentData(c.ID))
}

// origin returns when, from where and by which device a challenge was started.
func origin(c challenge.Challenge, lang string) [4]challenge.Detail {
	from := c.Starter
	out := [4]challenge.Detail{
		{Key: mfa.HeaderTime, Value: time.UnixMilli(c.CreatedAt).UTC().Format(time.RFC3339)},
		{Key: mfa.HeaderDevice, Value: deviceOf(from)}, {Key: mfa.HeaderIP, Value: from.IP}, {Key: mfa.HeaderCountry}}
	if from.Country != "" {
		out[len(out)-1].Value = geo.Name(from.Country, lang)
	}
	return out
}

// recalled names the method that was completed because the client is remembered; nil without one.
func recalled(c challenge.Challenge) (out []challenge.Detail) {
	for _, m := range c.Methods {
		if m.Remembered != "" {
			out = append(out, challenge.Detail{Key: mfa.HeaderRemembered, Value: string(m.Name)})
		}
	}
	return out
}

func deviceOf(from challenge.Starter) string {
	return cmp.Or(strings.TrimSpace(from.Brand+" "+from.Model), from.Description)
}

// label returns the label of a detail: its own, the header of the action, the built-in label, else its key.
func label(a mfa.Action, d challenge.Detail, lang string) string {
	if d.Label != "" {
		return d.Label
	}
	if text := a.Headers.Label(d.Key, lang); text != "" {
		return text
	}
	return cmp.Or(mfa.Label(d.Key, lang), d.Key)
}

// Document returns the intent document of a challenge.
func (s *Messenger) Document(id string, sealed []byte) ([]byte, error) {
	document, err := s.Ring.Open(sealed, challenge.IntentData(id))
	if err != nil {
		return nil, fmt.Errorf("open the intent of challenge %s: %w", id, err)
	}
	return document, nil
}
