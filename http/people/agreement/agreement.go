// Package agreement serves the agreements of section 4.10 of the interface (D-ADM-03,
// D-ADM-07), and the extension with which users accept them.
package agreement

import (
	"context"

	"castellan/domain/kit/fault"
	"castellan/domain/people/agreement"
	"castellan/http/rest"
)

const section = "4.10 Admin operations"

// Group serves the endpoints.
type Group struct{ Service *agreement.Service }

func (g Group) Endpoints() []rest.Endpoint {
	return append(rest.Section(section,
		rest.Get("/admin/get-agreements", "List the agreements of a user", rest.Tenant, g.list,
			fault.InvalidField, fault.RecordNotFound).
			Try("userId=${user.id}").
			Doc("listAgreements", "acceptedAt is null until the user accepts the agreement."),
		rest.Post("/admin/terms-of-service", "Publish a version of an agreement", rest.Tenant, g.publish,
			fault.InvalidField, fault.RecordNotFound, fault.RecordAlreadyExist).Idempotent().Body(rest.FileBody).
			Try(`{"base64String":"JVBERi0xLjQKJSVFT0YK","name":"Terms of service","description":"Fees changed",`+
				`"userId":"${admin.id}"}`).Names(rest.General, "userId").
			Doc("publishAgreement", "The file is a PDF, a Word document or plain text. Without version, the next version "+
				"of the name is used. With sendEmail, a background job mails the agreement to every active user with a mail "+
				"address, in batches of 800; id is the id of the job."),
	), rest.Section("Extensions: agreements",
		rest.Post("/user/agreements/accept", "Accept an agreement", rest.User, g.accept, fault.InvalidField,
			fault.RecordNotFound).
			Try(`{"id":${publishAgreement.data.agreementId}}`).
			Doc("acceptAgreement", "A repeated request changes nothing; the first acceptance counts."),
	).Extended()...)
}

type listRequest struct {
	Version *string `json:"version" doc:"returns only this version" example:"2"`
	UserID  string  `json:"userId"`
}

type record struct {
	ID               int64      `json:"id"`
	Name             string     `json:"name" example:"Terms of service"`
	Description      string     `json:"description" example:"Fees changed"`
	Version          string     `json:"version" example:"2"`
	IsAcceptRequired bool       `json:"isAcceptRequired"`
	FilePath         string     `json:"filePath" example:"agreement/7K/QX/01JDEXAMPLE.pdf"`
	CreatedAt        rest.Time  `json:"createdAt"`
	AcceptedAt       *rest.Time `json:"acceptedAt" doc:"null: not accepted" example:"2026-11-22T10:00:00.000Z"`
}

func show(a agreement.Agreement) record {
	return record{a.ID, a.Name, a.Description, a.Version, a.AcceptRequired, a.FilePath, rest.Time{Time: a.CreatedAt},
		rest.At(a.AcceptedAt)}
}

func (g Group) list(ctx context.Context, _ rest.Caller, in listRequest) ([]record, error) {
	all, err := g.Service.Of(ctx, agreement.Query{UserID: in.UserID, Version: in.Version})
	return rest.Each(all, show), err
}

type publishRequest struct {
	Base64String     rest.Base64 `json:"base64String" example:"JVBERi0xLjQKJSVFT0YK"`
	Name             string      `json:"name" doc.maxLength:"200" example:"Terms of service"`
	Description      string      `json:"description" doc.maxLength:"4000" example:"Fees changed"`
	Version          *string     `json:"version" doc.maxLength:"32" example:"2"`
	SendEmail        *bool       `json:"sendEmail"`
	IsAcceptRequired *bool       `json:"isAcceptRequired"`
	UserID           string      `json:"userId" doc:"user id of the publisher"`
}

// published is the added version with the job that mails it.
type published struct {
	Accepted    bool    `json:"accepted"`
	ID          *string `json:"id" doc:"id of the mail job; null: none" example:"01JD0000000000000000000000"`
	Count       int     `json:"count" doc:"number of recipients" example:"2"`
	AgreementID int64   `json:"agreementId" example:"12"`
	Version     string  `json:"version" example:"2"`
}

func (g Group) publish(ctx context.Context, who rest.Caller, in publishRequest) (out rest.Data[published], err error) {
	p, err := g.Service.Publish(ctx, who.By(), agreement.Draft{Content: in.Base64String,
		Agreement: agreement.Agreement{Name: in.Name, Description: in.Description, Version: rest.Or(in.Version, ""),
			AcceptRequired: rest.Or(in.IsAcceptRequired, false), CreatedBy: in.UserID},
		Mail: rest.Or(in.SendEmail, false)})
	out.Data = published{true, rest.Filled(p.JobID), p.Count, p.ID, p.Version}
	return out, err
}

func (g Group) accept(ctx context.Context, who rest.Caller, in rest.ByID) (rest.None, error) {
	return rest.None{}, g.Service.Store.Accept(ctx, int64(in.ID), who.UserID)
}
