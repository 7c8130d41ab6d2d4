// Loops over Pinocchio's mass matrix and derivatives, so that Python's loop is not measured.
//
// Pinocchio's own headers take minutes to compile. These are declarations of what its shared library
// already holds as instantiated templates; the model and the data are the objects that Python made.
#include <Eigen/Core>
#include <boost/python.hpp>

namespace pinocchio {
enum struct Convention { WORLD = 0, LOCAL = 1 };
template <typename, int> struct JointCollectionDefaultTpl;
template <typename, int, template <typename, int> class> struct ModelTpl {};
template <typename, int, template <typename, int> class> struct DataTpl {
  typedef Eigen::MatrixXd MatrixXs;
};
template <typename S, int O, template <typename, int> class J, typename Q>
const typename DataTpl<S, O, J>::MatrixXs& crba(
    const ModelTpl<S, O, J>&, DataTpl<S, O, J>&, const Eigen::MatrixBase<Q>&, Convention);
namespace impl {
template <typename S, int O, template <typename, int> class J, typename Q, typename V, typename A>
void computeRNEADerivatives(
    const ModelTpl<S, O, J>&, DataTpl<S, O, J>&, const Eigen::MatrixBase<Q>&,
    const Eigen::MatrixBase<V>&, const Eigen::MatrixBase<A>&);
}  // namespace impl
}  // namespace pinocchio

using Model = pinocchio::ModelTpl<double, 0, pinocchio::JointCollectionDefaultTpl>;
using Data = pinocchio::DataTpl<double, 0, pinocchio::JointCollectionDefaultTpl>;
using State = Eigen::Ref<const Eigen::VectorXd>;
using States = Eigen::Map<const Eigen::MatrixXd>;

template <class T> T& unwrapped(PyObject* object) { return boost::python::extract<T&>(object); }

extern "C" void mass_matrix(
    PyObject* model, PyObject* data, const double* q, const double*, const double*, long n,
    long states) {
  const Model& m = unwrapped<Model>(model);
  Data& d = unwrapped<Data>(data);
  const States Q(q, n, states);
  for (long k = 0; k < states; ++k)
    pinocchio::crba(m, d, State(Q.col(k)), pinocchio::Convention::LOCAL);
}

extern "C" void inverse_dynamics_derivatives(
    PyObject* model, PyObject* data, const double* q, const double* v, const double* a, long n,
    long states) {
  const Model& m = unwrapped<Model>(model);
  Data& d = unwrapped<Data>(data);
  const States Q(q, n, states), V(v, n, states), A(a, n, states);
  for (long k = 0; k < states; ++k)
    pinocchio::impl::computeRNEADerivatives(
        m, d, State(Q.col(k)), State(V.col(k)), State(A.col(k)));
}
