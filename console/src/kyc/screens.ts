/** The screens of documents, identity and AML. */
import type { Screen } from '../app/screen';

export const kyc: Screen[] = [
  {
    path: '/kyc',
    title: 'kyc.title',
    group: 'work',
    needs: ['GET /user/get-documents', 'GET /user/get-kyc-images', 'POST /user/update-kyc'],
    load: () => import('./queue'),
  },
  {
    path: '/kyc/$id',
    title: 'kyc.case',
    group: 'work',
    needs: ['GET /user/get-documents', 'GET /user/get-kyc-images'],
    inner: true,
    load: () => import('./case'),
  },
  {
    path: '/aml',
    title: 'aml.title',
    group: 'work',
    needs: ['GET /admin/user/get-users-without-aml-confirmed'],
    load: () => import('./aml'),
  },
  {
    path: '/documents',
    title: 'documents.title',
    group: 'people',
    needs: ['GET /user/get-documents'],
    load: () => import('./documents'),
  },
];
