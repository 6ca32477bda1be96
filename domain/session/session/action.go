package session

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/client"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/id"
	"castellan/domain/kit/token"
)

// LoginAction is the action of LOGIN: a completed challenge becomes a session. The session commits with the challenge
// and the audit row that names it, and is the line of the history. Its token is the header x-auth of the outcome.
func (s *Service) LoginAction() challenge.Action {
	return challenge.Action{Code: ActionLogin, Flow: challenge.FlowLogin, Build: s.build}
}

func (s *Service) build(ctx context.Context, x challenge.Execution) (challenge.Result, []commit.Write, error) {
	var none challenge.Result
	cmd, err := unpack(x.Command)
	if err != nil {
		return none, nil, fmt.Errorf("login: command: %w", err)
	}
	c, now := x.Challenge, x.Now
	// A session never takes an id from outside or from another session (SEC-21).
	made := Session{ID: id.New(now), UserID: c.UserID, CreatedAt: now, LastSeenAt: now, ExpiresAt: now.Add(s.TokenTTL),
		IP:      c.Starter.IP,
		Country: c.Starter.Country, Brand: c.Starter.Brand, Model: c.Starter.Model, Description: c.Starter.Description,
		DeviceID: cmd.DeviceID, SV: c.SV, AMR: amr(c), Thumbprint: cmd.Thumbprint}
	until := made.ExpiresAt
	if made.Thumbprint != "" {
		until, made.ExpiresAt = s.until(made, now)
	}
	signed, err := s.sign(made, cmd.Roles, now, until)
	if err != nil {
		return none, nil, err
	}
	data, err := json.Marshal(struct {
		// #nosec G117: the key names a session in lists; its token is a header.
		SessionKey string `json:"sessionKey"`
	}{made.ID})
	if err != nil {
		return none, nil, fmt.Errorf("login: %w", err)
	}
	writes := []commit.Write{Add{made, c.CV}}
	if made.Thumbprint != "" {
		writes = append(writes, Bind{SessionID: made.ID, Thumbprint: made.Thumbprint})
	}
	if user.LoginDay(now) > cmd.Day || cmd.Network != "" {
		writes = append(writes, user.LoggedIn{UserID: made.UserID, At: now, Network: cmd.Network})
	}
	told, err := s.arrived(ctx, cmd, c)
	return challenge.Result{Success: true, Data: data, Headers: map[string]string{string(token.XAuth): signed},
		UserID: made.UserID, SessionID: made.ID, SV: made.SV}, append(writes, told...), err
}

// First returns the session of an account that the challenge of x has just created: its outcome, and the writes,
// which commit after the account.
func (s *Service) First(ctx context.Context, u user.User, x challenge.Execution) (challenge.Result, []commit.Write,
	error) {
	cmd := command{Roles: u.AllRoles()}
	if network := client.Region(client.PrefixOf(x.Challenge.Starter.IP)); network != "" {
		cmd.Network = user.Mark(u.ID, network)
	}
	x.Challenge.UserID, x.Challenge.CV, x.Challenge.SV, x.Command = u.ID, u.CV, u.SV, cmd.pack()
	return s.build(ctx, x)
}

// arrived returns the notice of a login from a network that is new to the account (D-EXT-07).
func (s *Service) arrived(ctx context.Context, cmd command, c challenge.Challenge) ([]commit.Write, error) {
	if !cmd.NotifyOwner {
		return nil, nil
	}
	u, err := s.Users.Get(ctx, c.UserID)
	if err != nil {
		return nil, err
	}
	return s.Notices.Notice(u.Account(), message.NewNetwork, nil, c.Starter.IP), nil
}

// amr returns the methods that authenticated the user, in the values of RFC 8176: the password, then each kind of
// second factor once. A passkey in place of the password has verified its user, so it is more than one factor.
func amr(c challenge.Challenge) []string {
	out := []string{"pwd"}
	if c.Entry != challenge.Password {
		out = []string{"hwk", "mfa"}
	}
	add := func(vs ...string) {
		for _, v := range vs {
			if !slices.Contains(out, v) {
				out = append(out, v)
			}
		}
	}
	for _, m := range c.CompletedMethods() {
		if m.Remembered != "" { // the key was proven, not the method
			add("swk")
		} else {
			add(m.Name.AMR()...)
		}
	}
	if len(out) > 1 {
		add("mfa")
	}
	return out
}
