// Package document serves section 4.11 of the interface, the documents of users.
package document

import (
	"context"
	"mime"

	"castellan/domain/kit/fault"
	"castellan/domain/people/document"
	"castellan/http/rest"
)

const section = "4.11 Documents"

// Group serves the section.
type Group struct {
	Service *document.Service
	// IdentityNo returns the identity number of a user, "" if unknown; nil: unknown for all users.
	IdentityNo func(ctx context.Context, userID string) (string, error)
}

func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section(section,
		rest.Post("/document/upload-document", "Upload a document of the caller", rest.Tenant, g.upload,
			fault.InvalidField, fault.RecordLimitReached).
			For(rest.SelfUser).Body(rest.FileBody).
			Try(`{"base64Data":"`+rest.ExampleFile+`","fileName":"passport.png","description":"My passport"}`).
			Doc("uploadDocument", "A picture (PNG, JPEG, WebP, GIF) or a PDF, stored encrypted and unchanged. type is the "+
				"kind of the document. After a rejection, an identity document puts the account back to pending."),
		rest.Get("/user/get-documents", "List documents, newest first", rest.Tenant, g.list, fault.InvalidField).
			For(rest.SelfOrAdmin).
			Try("limit=10").
			Doc("listDocuments", "Users see their own documents. Administrators see the documents of userId, or all "+
				"documents."),
		rest.Post("/admin/save-document", "Upload a document of a user", rest.Tenant, g.save,
			fault.InvalidField, fault.RecordNotFound, fault.RecordLimitReached).Body(rest.FileBody).
			Try(`{"userId":"${user.id}","base64String":"`+rest.ExampleFile+`","documentName":"passport.png","type":1}`).
			Names(rest.General, "userId").
			Doc("saveDocument", "A picture (PNG, JPEG, WebP, GIF) or a PDF, stored encrypted and unchanged."),
		rest.NamesBy(rest.Post("/user/update-document", "Update a document", rest.Tenant, g.change,
			fault.InvalidField, fault.RecordNotFound).
			For(rest.SelfOrAdmin).Body(rest.LargeBody).
			Try(`{"id":"${saveDocument.data.id}","description":"My new passport"}`).
			Doc("updateDocument", "Users can update the description of their own documents; administrators also type, "+
				"status and reason. Fields that are not sent stay unchanged."),
			g.owner),
		rest.Get("/admin/get-document-file", "Download a document", rest.Tenant, g.file,
			fault.InvalidField, fault.RecordNotFound).
			Try(`documentInfo={"id":"${saveDocument.data.id}"}`).
			Binary(document.MediaTypes...).
			Doc("getDocumentFile", "Returns the uploaded bytes unchanged, as an attachment. Each download is recorded in "+
				"the audit log."),
	)
}

// metadata is the answer of an upload (section 2.8).
type metadata struct {
	UserID      string  `json:"userId"`
	IdentityNo  string  `json:"identityNo" doc:"empty if the account has none" example:"10000000146"`
	Name        string  `json:"name" example:"passport.png"`
	MimeType    string  `json:"mimeType" example:"image/png"`
	Type        int64   `json:"type" example:"0"`
	Description *string `json:"description" example:"My passport"`
	Status      string  `json:"status" example:"active"`
	Reason      *string `json:"reason" example:"waitingApproval"`
	FilePath    string  `json:"filePath" example:"document/TV/S1/01JD3XF9P2E6H4J8K3N5Q7S1TV"`
}

type record struct {
	ID          string    `json:"id"`
	UserID      string    `json:"userId"`
	Name        string    `json:"name" example:"passport.png"`
	MimeType    string    `json:"mimeType" example:"image/png"`
	Type        int64     `json:"type" example:"0"`
	Description *string   `json:"description" example:"My passport"`
	Status      string    `json:"status" example:"active"`
	Reason      *string   `json:"reason" example:"waitingApproval"`
	FilePath    string    `json:"filePath" example:"document/TV/S1/01JD3XF9P2E6H4J8K3N5Q7S1TV"`
	CreatedAt   rest.Time `json:"createdAt"`
	// Fields of the owner, in lists for administrators.
	FullName   *string `json:"fullName,omitempty" doc:"of the account; administrators only" example:"Ayşe Yılmaz"`
	KYCConfirm *string `json:"kycConfirm,omitempty" doc:"of the account; administrators only" example:"waitingApproval"`
}

func show(d document.Document) record {
	return record{ID: d.ID, UserID: d.UserID, Name: d.Name, MimeType: d.MimeType, Type: d.Type,
		Description: d.Description, Status: d.Status, Reason: d.Reason, FilePath: d.Path,
		CreatedAt: rest.Time{Time: d.CreatedAt}}
}

// showOwned shows a document with its owner, for administrators.
func showOwned(d document.Document) record {
	r := show(d)
	r.FullName, r.KYCConfirm = rest.Filled(d.OwnerName), rest.Filled(d.OwnerKYC)
	return r
}

// texts are a text by language.
type texts map[string]string

type uploadRequest struct {
	Base64Data      rest.Base64 `json:"base64Data"`
	FileName        string      `json:"fileName" doc.maxLength:"200" example:"passport.png"`
	Description     string      `json:"description" doc.maxLength:"2000" example:"My passport"`
	FileNameJSON    *texts      `json:"fileNameJson"`
	Type            *rest.ID    `json:"type" doc:"a value of the parameter DOCUMENT_TYPE" example:"1"`
	DescriptionJSON *texts      `json:"descriptionJson"`
}

func (g Group) upload(ctx context.Context, who rest.Caller, in uploadRequest) (rest.Data[metadata], error) {
	number := ""
	if g.IdentityNo != nil {
		var err error
		if number, err = g.IdentityNo(ctx, who.UserID); err != nil {
			return rest.Data[metadata]{}, err
		}
	}
	d, err := g.Service.Add(ctx, who.By(), document.Document{UserID: who.UserID, Name: in.FileName,
		Type: int64(rest.Or(in.Type, document.Unclassified)), Description: &in.Description,
		NameTexts: rest.Or(in.FileNameJSON, nil), DescriptionTexts: rest.Or(in.DescriptionJSON, nil)}, in.Base64Data,
		document.Fields{Name: "fileName", NameTexts: "fileNameJson", Content: "base64Data"})
	return rest.Data[metadata]{Data: metadata{UserID: d.UserID, IdentityNo: number, Name: d.Name,
		MimeType: d.MimeType, Type: d.Type, Description: d.Description, Status: d.Status,
		Reason: d.Reason, FilePath: d.Path}}, err
}

type saveRequest struct {
	UserID          string      `json:"userId"`
	Base64String    rest.Base64 `json:"base64String"`
	DocumentName    string      `json:"documentName" doc.maxLength:"200" example:"passport.png"`
	Type            rest.ID     `json:"type" doc:"a value of the parameter DOCUMENT_TYPE" example:"1"`
	Description     *string     `json:"description" doc.maxLength:"2000" example:"The passport"`
	DescriptionJSON *texts      `json:"descriptionJson"`
	NameJSON        *texts      `json:"nameJson"`
}

func (g Group) save(ctx context.Context, who rest.Caller, in saveRequest) (rest.Data[record], error) {
	d, err := g.Service.Add(ctx, who.By(), document.Document{UserID: in.UserID, Name: in.DocumentName,
		Type: int64(in.Type), Description: in.Description, NameTexts: rest.Or(in.NameJSON, nil),
		DescriptionTexts: rest.Or(in.DescriptionJSON, nil)}, in.Base64String,
		document.Fields{Name: "documentName", NameTexts: "nameJson", Content: "base64String"})
	return rest.Data[record]{Data: show(d)}, err
}

type listRequest struct {
	UserID *string  `json:"userId"`
	Type   *rest.ID `json:"type" example:"1"`
	Status *string  `json:"status" example:"active"`
	Reason *string  `json:"reason" example:"waitingApproval"`
	// Extensions (D-DOC-07).
	KYCConfirm *string `json:"kycConfirm" doc:"of the account; administrators only" example:"waitingApproval"`
	rest.Sorted
}

func (g Group) list(ctx context.Context, who rest.Caller, in listRequest) (rest.Reply[[]record], error) {
	q := document.Query{UserID: in.UserID, Type: (*int64)(in.Type), Status: in.Status, Reason: in.Reason}
	showing := show
	if who.AsAdmin {
		showing, q.OwnerKYC = showOwned, in.KYCConfirm
	} else {
		if in.UserID != nil && *in.UserID != who.UserID {
			return rest.Reply[[]record]{}, fault.New(fault.Forbidden, "the documents belong to another user")
		}
		q.UserID = &who.UserID
	}
	return rest.List(ctx, who, in.Paging, q, g.Service.Store.List, showing)
}

type changeRequest struct {
	ID              string                `json:"id"`
	UserID          *string               `json:"userId" doc:"the owner; optional"`
	Description     rest.Nullable[string] `json:"description" doc.maxLength:"2000" example:"My new passport"`
	DescriptionJSON *texts                `json:"descriptionJson"`
	Type            *rest.ID              `json:"type" doc:"a value of DOCUMENT_TYPE; administrators only" example:"1"`
	Status          *string               `json:"status" doc:"a value of the parameter DOCUMENT_STATUS" example:"deActive"`
	Reason          rest.Nullable[string] `json:"reason" doc.maxLength:"2000" example:"blurred"`
}

// owner returns the user of a document. Type, status and reason are KYC matters.
func (g Group) owner(ctx context.Context, who rest.Caller, in changeRequest) (rest.Named, error) {
	m := rest.General
	if in.Status != nil || in.Reason.Sent || in.Type != nil && who.AsAdmin {
		m = rest.Standing
	}
	d, err := g.Service.Store.Get(ctx, in.ID)
	return rest.Named{Users: []string{d.UserID}, Matter: m}, err
}

func (g Group) change(ctx context.Context, who rest.Caller, in changeRequest) (rest.Data[record], error) {
	if !who.AsAdmin {
		in.Type = nil // like any field of the record that users do not set
	}
	d, err := g.Service.Change(ctx, who.By(), who.AsAdmin, document.Change{ID: in.ID, UserID: in.UserID,
		Description: next(in.Description), Reason: next(in.Reason), DescriptionTexts: rest.Or(in.DescriptionJSON, nil),
		Status: in.Status, Type: (*int64)(in.Type)})
	return rest.Data[record]{Data: show(d)}, err
}

// next is the value after a change; nil: unchanged.
func next(sent rest.Nullable[string]) **string {
	if !sent.Sent {
		return nil
	}
	return new(sent.Pointer())
}

type fileRequest struct {
	DocumentInfo reference `json:"documentInfo" doc:"id, filePath or both; as a query parameter, JSON"`
}

type reference struct {
	ID       *string `json:"id" alias:"documentId"`
	FilePath *string `json:"filePath" example:"document/TV/S1/01JD3XF9P2E6H4J8K3N5Q7S1TV"`
}

func (in fileRequest) MissingFields() []fault.Problem {
	if rest.Or(in.DocumentInfo.ID, "") == "" && rest.Or(in.DocumentInfo.FilePath, "") == "" {
		return []fault.Problem{{Field: "documentInfo", Message: "must name a document by id or filePath"}}
	}
	return nil
}

// file returns the bytes as a download. The headers of the edge forbid browsers to guess the type or run the
// content, and caches to store it.
func (g Group) file(ctx context.Context, who rest.Caller, in fileRequest) (rest.Reply[rest.None], error) {
	d, content, err := g.Service.File(ctx, who.By(), document.Reference{ID: rest.Or(in.DocumentInfo.ID, ""),
		Path: rest.Or(in.DocumentInfo.FilePath, "")})
	attachment := mime.FormatMediaType("attachment", map[string]string{"filename": d.Name})
	return rest.Reply[rest.None]{Raw: content, ContentType: d.MimeType,
		Headers: []rest.Header{{Name: "Content-Disposition", Value: attachment}}}, err
}
