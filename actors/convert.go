package actors

import (
	"errors"
	"strings"
	"time"

	"castellan/actors/pb"
	"castellan/domain/delivery/message"
	"castellan/domain/delivery/outbox"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/geo"
)

// overtaken is the code of a Refusal that the client of the actors handles itself.
const overtaken = "OVERTAKEN"

func asFault(err error) *fault.Error {
	var f *fault.Error
	if errors.As(err, &f) {
		return f
	}
	return nil
}

func faultOf(r *pb.Refusal) *fault.Error {
	f := fault.New(fault.Code(r.Code), "%s", r.Message)
	f.Field, f.RetryAfter = r.Field, time.Duration(r.RetryAfterMs)*time.Millisecond
	if r.Field != "" {
		f.Fields = []fault.Problem{{Field: r.Field, Message: strings.TrimPrefix(r.Message, r.Field+": ")}}
	}
	if r.AttemptsLeft >= 0 {
		n := int(r.AttemptsLeft)
		f.AttemptsLeft = &n
	}
	return f
}

// prime and unprime convert a new challenge: pending, of version 1, without answers, renewals or failures.
func prime(c challenge.Insert) *pb.ChallengePrime {
	s := c.Starter
	p := &pb.ChallengePrime{
		UserId: c.UserID, Action: c.Action, Flow: string(c.Flow),
		CreatedAt: c.CreatedAt, ExpiresAt: c.ExpiresAt, Command: c.Command,
		Subject: c.Subject, Kind: int32(c.Kind), Required: int32(c.Required), Cv: c.CV, Sv: c.SV,
		Proven: c.Proven, Commanded: c.Commanded, Filter: string(c.Filter),
		Intent: c.Intent, IntentDigest: c.IntentDigest, SignIntent: c.SignIntent, Brief: c.Brief, PolicyId: c.PolicyID,
		Service: c.Service, Key: c.Key, RememberDays: int32(c.RememberDays),
		Methods: make([]*pb.PrimedMethod, len(c.Methods)),
		Starter: &pb.Starter{
			SessionId: s.SessionID, RequestId: s.RequestID, Ip: s.IP, Country: s.Country, Language: s.Language,
			Brand: s.Brand, Model: s.Model, Description: s.Description,
		},
	}
	for i, m := range c.Methods {
		p.Methods[i] = &pb.PrimedMethod{
			Id: m.ID, Name: string(m.Name), Code: m.Code, Template: m.Template, Hint: m.Hint,
			LifetimeMs: m.LifetimeMs, RenewMs: m.RenewMs, ExpiresAt: m.ExpiresAt, MadeAt: m.MadeAt,
			Mandatory: m.Mandatory, Number: m.Number, Digest: &pb.Digest{Key: m.Digest.Key, Sum: m.Digest.Sum},
		}
	}
	return p
}

func unprime(id string, p *pb.ChallengePrime) challenge.Challenge {
	s := p.GetStarter()
	c := challenge.Challenge{
		ID: id, UserID: p.UserId, Action: p.Action, Flow: challenge.Flow(p.Flow),
		CreatedAt: p.CreatedAt, ExpiresAt: p.ExpiresAt, Version: 1,
		Body: challenge.Body{
			Subject: p.Subject, Kind: challenge.Kind(p.Kind), Required: int(p.Required), CV: p.Cv, SV: p.Sv,
			Proven: p.Proven, Commanded: p.Commanded, Filter: geo.Filter(p.Filter),
			IntentDigest: p.IntentDigest, SignIntent: p.SignIntent, Brief: p.Brief, PolicyID: p.PolicyId, Service: p.Service,
			Key: p.Key, RememberDays: int(p.RememberDays),
			Methods: make([]challenge.Method, len(p.Methods)),
			Starter: challenge.Starter{
				SessionID: s.GetSessionId(), RequestID: s.GetRequestId(),
				IP: s.GetIp(), Country: s.GetCountry(), Language: s.GetLanguage(),
				Brand: s.GetBrand(), Model: s.GetModel(), Description: s.GetDescription(),
			},
		},
	}
	for i, m := range p.Methods {
		c.Methods[i] = challenge.Method{
			ID: m.Id, Name: challenge.Name(m.Name), Code: m.Code, Template: m.Template, Hint: m.Hint,
			LifetimeMs: m.LifetimeMs, RenewMs: m.RenewMs, ExpiresAt: m.ExpiresAt, MadeAt: m.MadeAt,
			Mandatory: m.Mandatory, Number: m.Number,
			Digest: challenge.Digest{Key: m.GetDigest().GetKey(), Sum: m.GetDigest().GetSum()},
		}
	}
	return c
}

func answerOf(m *pb.ChallengeComplete) challenge.Answer {
	a := challenge.Answer{MethodID: m.MethodId, Method: challenge.Name(m.Method), Verdict: challenge.Verdict(m.Verdict)}
	for _, d := range m.Digests {
		a.Digests = append(a.Digests, challenge.Digest{Key: d.Key, Sum: d.Sum})
	}
	a.Intent, a.Remember = m.Intent, m.Remember
	if p := m.Proof; p != nil {
		a.Proof = &challenge.Proof{DeviceID: p.DeviceId, JWS: p.Jws, JWK: p.Jwk}
	}
	if m.Claim != nil {
		a.Use = &challenge.Use{Key: m.Claim.Key, Value: m.Claim.Value}
	}
	return a
}

func view(c challenge.Challenge) *pb.ChallengeView {
	v := &pb.ChallengeView{Id: c.ID, Action: c.Action, Completed: c.Completed(),
		CreatedAt: c.CreatedAt, ExpiresAt: c.ExpiresAt}
	for _, m := range c.Methods {
		v.Methods = append(v.Methods, &pb.Method{
			Id: m.ID, Name: string(m.Name), Hint: m.Hint, Number: m.Number,
			LifetimeMs: m.LifetimeMs, RenewMs: m.RenewMs, ExpiresAt: m.ExpiresAt,
			Completed: m.Order > 0, Generation: int32(m.Generation),
		})
	}
	return v
}

func unview(v *pb.ChallengeView) challenge.Challenge {
	c := challenge.Challenge{ID: v.Id, Action: v.Action, CreatedAt: v.CreatedAt, ExpiresAt: v.ExpiresAt}
	if v.Completed {
		c.State = challenge.Executing
	}
	for _, m := range v.Methods {
		n := challenge.Method{ID: m.Id, Name: challenge.Name(m.Name), Hint: m.Hint, LifetimeMs: m.LifetimeMs,
			RenewMs: m.RenewMs, ExpiresAt: m.ExpiresAt, Generation: int(m.Generation), Number: m.Number}
		if m.Completed {
			n.Order = 1
		}
		c.Methods = append(c.Methods, n)
	}
	return c
}

func outgoing(challengeID, methodID, userID string, m *pb.Outgoing) outbox.Message {
	return outbox.Message{
		ID: m.Id, ChallengeID: challengeID, MethodID: methodID, Generation: int(m.Generation), UserID: userID,
		Channel: message.Channel(m.Channel), Destination: m.Destination, Prefix: m.Prefix, Dial: m.Dial,
		Proven: m.Proven, Uncounted: m.Uncounted, State: outbox.State(m.State), Payload: m.Payload,
		CreatedAt: time.UnixMilli(m.CreatedAt), ExpiresAt: time.UnixMilli(m.ExpiresAt),
		LeaseUntil: time.UnixMilli(m.LeaseUntil),
	}
}

func toOutgoing(m outbox.Message) *pb.Outgoing {
	return &pb.Outgoing{
		Id: m.ID, Generation: int32(m.Generation),
		Channel: string(m.Channel), Destination: m.Destination, Prefix: m.Prefix, Dial: m.Dial,
		Proven: m.Proven, Uncounted: m.Uncounted, State: int32(m.State), Payload: m.Payload,
		CreatedAt: m.CreatedAt.UnixMilli(), ExpiresAt: m.ExpiresAt.UnixMilli(),
		LeaseUntil: m.LeaseUntil.UnixMilli(),
	}
}

func pushCaps(r challenge.PushRules) *pb.PushCaps {
	return &pb.PushCaps{Pending: int32(r.Sent), SentWindowMs: r.Window.Milliseconds(), Day: int32(r.SentDay),
		Denials: int32(r.Denials), WindowMs: r.DenialWindow.Milliseconds(), PauseMs: r.Pause.Milliseconds()}
}

func pushRules(c *pb.PushCaps) challenge.PushRules {
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	return challenge.PushRules{Sent: int(c.Pending), Window: ms(c.SentWindowMs), SentDay: int(c.Day),
		Denials: int(c.Denials), DenialWindow: ms(c.WindowMs), Pause: ms(c.PauseMs)}
}
