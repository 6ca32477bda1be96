package user

import (
	"context"

	"castellan/domain/account/user"
	"castellan/domain/kit/fault"
	"castellan/domain/session/profile"
	"castellan/http/rest"
)

// answered is the account after a change.
func answered(u user.User, err error) (rest.Data[userListItem], error) {
	return rest.Data[userListItem]{Data: show(u)}, err
}

type nameRequest struct {
	UserID  string `json:"userId" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA" maxLength:"64"`
	Name    string `json:"name" example:"Ayşe" maxLength:"100"`
	Surname string `json:"surname" example:"Yılmaz" maxLength:"100"`
}

func (g Group) setName(ctx context.Context, who rest.Caller, in nameRequest) (rest.Data[userListItem], error) {
	if err := fault.All(user.CheckNames(&in.Name, &in.Surname)); err != nil {
		return rest.Data[userListItem]{}, err
	}
	return answered(g.Profiles.SetName(ctx, who.By(), in.UserID, in.Name, in.Surname))
}

type phoneRequest struct {
	UserID      string `json:"userId" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA" maxLength:"64"`
	PhoneNum    string `json:"phoneNum" example:"5321234567" maxLength:"40" doc:"number without the dialling code"`
	CountryCode string `json:"countryCode" example:"90" maxLength:"16" doc:"dialling code"`
}

func (g Group) setPhone(ctx context.Context, who rest.Caller, in phoneRequest) (rest.Data[userListItem], error) {
	is, problems := user.Identify(&in.CountryCode, &in.PhoneNum, nil)
	if is.Phone != "" && (user.User{Phone: is.Phone}).Reachable() == "" { // a placeholder
		problems = append(problems, fault.Problem{Field: "phoneNum", Message: "must be digits, without the country code"})
	}
	if err := renamed(problems, "phoneNumber", "phoneNum"); err != nil {
		return rest.Data[userListItem]{}, err
	}
	dial, err := user.DialCode(in.CountryCode)
	if err != nil {
		return rest.Data[userListItem]{}, err
	}
	return answered(g.Profiles.SetPhone(ctx, who.By(), in.UserID, dial, is.Phone))
}

type mailRequest struct {
	UserID      string `json:"userId" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA" maxLength:"64"`
	MailAddress string `json:"mailAddress" example:"ayse@example.com" maxLength:"320"`
}

func (g Group) setMail(ctx context.Context, who rest.Caller, in mailRequest) (rest.Data[userListItem], error) {
	is, problems := user.Identify(nil, nil, &in.MailAddress)
	if err := renamed(problems, "email", "mailAddress"); err != nil {
		return rest.Data[userListItem]{}, err
	}
	return answered(g.Profiles.SetMail(ctx, who.By(), in.UserID, is.Mail))
}

// renamed is INVALID_FIELD with the field names of this endpoint.
func renamed(problems []fault.Problem, from, to string) error {
	for i, p := range problems {
		if p.Field == from {
			problems[i].Field = to
		}
	}
	return fault.All(problems)
}

type historyRequest struct {
	UserID    string     `json:"userId" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA" maxLength:"64"`
	StartDate *rest.Time `json:"startDate" example:"2020-01-01"`
	EndDate   *rest.Time `json:"endDate" example:"2099-12-31" doc:"inclusive; a date includes the whole day"`
	rest.Paging
}

type emailChange struct {
	ID        rest.ID   `json:"id" example:"1"`
	UserID    string    `json:"userId" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	OldEmail  string    `json:"oldEmail" example:"ayse@example.com" doc:"empty if the account had none"`
	NewEmail  string    `json:"newEmail" example:"ayse.yilmaz@example.com"`
	ChangedBy string    `json:"changedBy" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKB" doc:"user id of the administrator"`
	CreatedAt rest.Time `json:"createdAt"`
}

func showChange(c profile.MailChange) emailChange {
	return emailChange{rest.ID(c.ID), c.UserID, c.Old, c.New, c.ChangedBy, rest.Time{Time: c.At}}
}

func (g Group) history(
	ctx context.Context, who rest.Caller, in historyRequest,
) (out rest.Reply[[]emailChange], err error) {
	q := profile.Query{UserID: in.UserID}
	if q.From, q.To, err = rest.Span("startDate", in.StartDate, in.EndDate); err != nil {
		return out, err
	}
	return rest.List(ctx, who, in.Paging, q, g.Profiles.Store.MailChanges, showChange)
}
