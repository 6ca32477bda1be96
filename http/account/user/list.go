package user

import (
	"context"
	"slices"
	"strings"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/fault"
	"castellan/http/rest"
)

// userListItem is an account in a list of administrators.
type userListItem struct {
	UserID      string `json:"userId" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	FullName    string `json:"fullName" example:"Ayşe Yılmaz"`
	Email       string `json:"email" example:"ayse@example.com" doc:"empty if the account has none"`
	PhoneNumber string `json:"phoneNumber" example:"+905321234567" doc:"empty if the account has none"`
	KYCConfirm  bool   `json:"kycConfirm" doc:"whether the identity is confirmed"`
	Status      string `json:"status" example:"active"`
}

func show(u user.User) userListItem {
	return userListItem{u.ID, u.FullName(), u.Email, u.Phone, u.KYCApproved(), string(u.Status)}
}

type listRequest struct {
	UserID         *string    `json:"userId"`
	IdentityNumber *string    `json:"identityNumber"`
	TaxNumber      *string    `json:"taxNumber"`
	PhoneNumber    *string    `json:"phoneNumber" example:"+905321234567" doc:"with or without the dialling code"`
	Email          *string    `json:"email" doc:"not case-sensitive"`
	FullName       *string    `json:"fullName" example:"yılmaz" doc:"part of the name, without case and accents"`
	Search         *string    `json:"search" example:"demir ayse 532" maxLength:"200" doc:"extension"`
	KYCConfirm     *bool      `json:"kycConfirm"`
	BirthDate      *rest.Time `json:"birthDate"`
	Type           *string    `json:"type" enum:"bireysel,kurumsal"`
	Status         *string    `json:"status" example:"active"`
	SortedByDate   bool       `json:"isSortedByDate" default:"false" doc:"true: newest registration first; false: by id"`
	rest.Paging
}

// query reads the filters. INVALID_FIELD with every faulty field.
func (g Group) query(in listRequest) (user.Query, error) {
	q := user.Query{ID: in.UserID, TaxNumber: in.TaxNumber, Name: in.FullName, KYCApproved: in.KYCConfirm,
		Type: (*user.Type)(in.Type), Status: (*user.Status)(in.Status), NewestFirst: in.SortedByDate}
	var ps fault.Problems
	for _, f := range []struct {
		name string
		text *string
	}{{"userId", in.UserID}, {"identityNumber", in.IdentityNumber}, {"taxNumber", in.TaxNumber},
		{"fullName", in.FullName}} {
		ps.Require(f.text == nil || strings.TrimSpace(*f.text) != "", f.name, "must not be blank")
	}
	if in.PhoneNumber != nil {
		var ok bool
		q.Phone, q.National, ok = numbers(*in.PhoneNumber)
		ps.Require(ok, "phoneNumber", "must be the digits of a phone number")
	}
	if in.Search != nil {
		search, ok := user.ParseSearch(*in.Search)
		q.Search = &search
		ps.Require(ok, "search", "must contain a letter or a digit")
	}
	if in.Email != nil {
		mail, err := user.CanonicalMail(*in.Email)
		q.Email = &mail
		ps.Require(err == nil, "email", "must be a mail address")
	}
	ps.Require(g.knows(in.Status), "status", "is not a known status")
	if in.IdentityNumber != nil {
		q.IdentityHashes = g.HashesIdentity(strings.TrimSpace(*in.IdentityNumber))
	}
	if in.BirthDate != nil {
		q.BirthDate = new(in.BirthDate.UTC().Format(time.DateOnly))
	}
	return q, fault.All(ps)
}

// numbers reads a phone number with or without its dialling code and plus sign. An unescaped
// plus in a query arrives as a space. A number that begins with "+" or "00" has its dialling
// code; for any other, both readings are returned.
func numbers(s string) (full, national *string, ok bool) {
	text := user.NumberText(s)
	digits, international := strings.CutPrefix(text, "+")
	if rest, zeros := strings.CutPrefix(digits, "00"); zeros {
		digits, international = rest, true
	}
	other := func(r rune) bool { return r < '0' || r > '9' }
	if digits == "" || strings.ContainsFunc(digits, other) {
		return nil, nil, false
	}
	if !international {
		national = &digits
	}
	return new("+" + digits), national, true
}

// knows reports whether the installation has a status, if one is sent (D-GEN-17).
func (g Group) knows(status *string) bool {
	return status == nil || slices.Contains(g.Statuses(), *status)
}

func (g Group) list(ctx context.Context, who rest.Caller, in listRequest) (out rest.Reply[[]userListItem], err error) {
	q, err := g.query(in)
	if err != nil {
		return out, err
	}
	return rest.List(ctx, who, in.Paging, q, g.Directory.Find, show)
}

// registration is an account in a list by registration date (D-USR-05).
type registration struct {
	userListItem
	CreatedAt rest.Time `json:"createdAt"`
}

func showRegistration(r user.Registered) registration {
	return registration{show(r.User), rest.Time{Time: r.CreatedAt}}
}

type activeRequest struct {
	PastMonths int `json:"pastMonths" default:"1" minimum:"1" maximum:"120"`
	rest.Paging
}

func (g Group) active(ctx context.Context, who rest.Caller, in activeRequest) (rest.Reply[[]userListItem], error) {
	since := g.Now().UTC().AddDate(0, -in.PastMonths, 0)
	return rest.List(ctx, who, in.Paging, since, g.Directory.Active,
		func(v user.Visitor) userListItem { return show(v.User) })
}

type spanRequest struct {
	BeginDate rest.Time `json:"beginDate" example:"2020-01-01"`
	EndDate   rest.Time `json:"endDate" example:"2099-12-31" doc:"inclusive; a date includes the whole day"`
}

func (in spanRequest) span() (user.Span, error) {
	from, to, err := rest.Span("beginDate", &in.BeginDate, &in.EndDate)
	return user.Span{From: from, To: to}, err
}

type registeredRequest struct {
	spanRequest
	rest.Paging
}

func (g Group) registered(ctx context.Context, who rest.Caller,
	in registeredRequest) (out rest.Reply[[]registration], err error) {
	span, err := in.span()
	if err != nil {
		return out, err
	}
	return rest.List(ctx, who, in.Paging, span, g.Directory.Registered, showRegistration)
}
